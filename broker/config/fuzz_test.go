package config

import (
	"strings"
	"testing"
)

func FuzzLoad(f *testing.F) {
	f.Add(shipped)
	f.Add(asked)
	f.Add("listeners=A://[::1]:1,B://:0\nlistener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT\nlog.cleaner.threads=+2\n")
	f.Add("max.connections.per.ip.overrides=a:1,[::1]:2\nnode.id= 7 \nretention.ms=\\u0031\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := ParseFile("f", []byte(text))
		if err != nil {
			return
		}
		for _, lenient := range []bool{false, true} {
			s, err := Load(Options{Sources: []Source{file}, Lenient: lenient, Hostname: "h"})
			if err != nil {
				if strings.TrimSpace(err.Error()) == "" {
					t.Fatal("an error without a text")
				}
				continue
			}
			l := NewLive(s)
			l.DescribeBroker()
			// What passes at start passes while running too.
			if err := l.Apply(nil, nil); err != nil {
				t.Fatal(err)
			}
			for _, l := range s.Listeners() {
				if l.AdvertisedHost == "" || nonroutable(l.AdvertisedHost) {
					t.Fatalf("clients are told to connect to %q", l.AdvertisedHost)
				}
			}
		}
	})
}

func FuzzTopicConfigs(f *testing.F) {
	s, err := Load(Options{})
	if err != nil {
		f.Fatal(err)
	}
	l := NewLive(s)
	for _, d := range TopicDefs() {
		f.Add(d.Name, d.Default)
	}
	f.Add("retention.ms", " +5 ")
	f.Fuzz(func(t *testing.T, name, value string) {
		set := map[string]string{name: value}
		if l.ValidateTopic(set) != nil {
			return
		}
		l.Topic(set)
		// What is shown is understood in the same way again.
		for _, e := range l.DescribeTopic(set) {
			if e.Name == name && l.ValidateTopic(map[string]string{name: *e.Value}) != nil {
				t.Fatalf("%s=%q is shown as %q, which is refused", name, value, *e.Value)
			}
		}
	})
}

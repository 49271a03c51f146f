package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/magiconair/properties"
)

// Source is one layer of settings: a file, the environment or the overrides.
type Source struct {
	// Name says where a setting stands, in messages: "server.properties", "environment".
	Name string

	entries map[string]string
	env     bool
}

// ParseFile reads the text of a server.properties; name is for messages only.
// Values are taken as they stand: ${…} is not expanded.
func ParseFile(name string, data []byte) (Source, error) {
	l := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
	p, err := l.LoadBytes(data)
	if err != nil {
		return Source{}, fmt.Errorf("read %s: %w", name, err)
	}
	return Source{Name: name, entries: p.Map()}, nil
}

// ParseEnv picks the KAFKA_… variables out of an os.Environ(): one underscore
// stands for a dot, two for an underscore, three for a dash. Names that are no
// config, such as KAFKA_HEAP_OPTS, are left to Load, which ignores them aloud.
func ParseEnv(environ []string) Source {
	s := Source{Name: "environment", entries: map[string]string{}, env: true}
	for _, e := range environ {
		name, v, _ := strings.Cut(e, "=")
		if rest, ok := strings.CutPrefix(name, "KAFKA_"); ok && rest != "" {
			s.entries[envKey(rest)] = v
		}
	}
	return s
}

func envKey(s string) string {
	s = strings.ReplaceAll(s, "___", "-")
	s = strings.ReplaceAll(s, "__", "\x00")
	s = strings.ReplaceAll(s, "_", ".")
	return strings.ToLower(strings.ReplaceAll(s, "\x00", "_"))
}

// envName is the inverse of envKey, for messages.
func envName(key string) string {
	key = strings.ReplaceAll(key, "_", "__")
	key = strings.ReplaceAll(key, ".", "_")
	return "KAFKA_" + strings.ToUpper(strings.ReplaceAll(key, "-", "___"))
}

// ParseOverrides reads the k=v words of --override.
func ParseOverrides(words []string) (Source, error) {
	s := Source{Name: "--override", entries: map[string]string{}}
	for _, w := range words {
		key, v, ok := strings.Cut(w, "=")
		key = strings.TrimSpace(key)
		if !ok || key == "" {
			return Source{}, fmt.Errorf("--override %q: expected key=value, such as num.partitions=3", w)
		}
		s.entries[key] = v
	}
	return s, nil
}

// keys returns the source's keys in order.
func (s Source) keys() []string {
	keys := make([]string, 0, len(s.entries))
	for k := range s.entries {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// where names the place of a setting, for a message that names the setting itself.
func (s Source) where(key string) string {
	if s.env {
		return envName(key)
	}
	return s.Name
}

// at names a setting of the source as its writer knows it.
func (s Source) at(key string) string {
	if s.env {
		return envName(key)
	}
	return key + " (" + s.Name + ")"
}

package config

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Listener is one socket to listen on, and the address that its clients are
// told to connect to.
type Listener struct {
	Name     string // Upper case.
	Protocol string // PLAINTEXT for now.
	Host     string // "" listens on all interfaces.
	Port     int    // 0 lets the system choose.
	// AdvertisedHost is never empty and never an address that means all interfaces.
	AdvertisedHost string
	AdvertisedPort int // 0: the port that was chosen.
}

// endpoint is one NAME://host:port.
type endpoint struct {
	name string
	host string
	port int
}

func (e endpoint) String() string {
	return e.name + "://" + net.JoinHostPort(e.host, strconv.Itoa(e.port))
}

var endpointPattern = regexp.MustCompile(`^([^:/]+)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)$`)

// parseListeners reads a comma-separated list of NAME://host:port. Names are
// folded to upper case.
func parseListeners(text string) ([]endpoint, error) {
	var eps []endpoint
	for _, s := range splitList(text) {
		if s == "" {
			continue
		}
		m := endpointPattern.FindStringSubmatch(s)
		if m == nil {
			return nil, fmt.Errorf("%q must be NAME://host:port, such as PLAINTEXT://127.0.0.1:9092", s)
		}
		port, err := strconv.Atoi(m[3])
		if err != nil || port < 0 || port > 65535 {
			return nil, fmt.Errorf("%q must end in a port from 0 to 65535", s)
		}
		ep := endpoint{name: strings.ToUpper(strings.TrimSpace(m[1])), host: m[2], port: port}
		if slices.ContainsFunc(eps, func(o endpoint) bool { return o.name == ep.name }) {
			return nil, fmt.Errorf("the listener name %s stands twice", ep.name)
		}
		eps = append(eps, ep)
	}
	return eps, nil
}

// parseProtocolMap reads a comma-separated list of NAME:PROTOCOL.
func parseProtocolMap(text string) (map[string]string, error) {
	m := map[string]string{}
	for _, s := range splitList(text) {
		if s == "" {
			continue
		}
		name, protocol, ok := strings.Cut(s, ":")
		name, protocol = strings.ToUpper(strings.TrimSpace(name)), strings.ToUpper(strings.TrimSpace(protocol))
		if !ok || name == "" || !slices.Contains([]string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}, protocol) {
			return nil, fmt.Errorf("%q must be NAME:PROTOCOL, the protocol PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL", s)
		}
		if _, ok := m[name]; ok {
			return nil, fmt.Errorf("the listener name %s stands twice", name)
		}
		m[name] = protocol
	}
	return m, nil
}

// samePort tells whether two endpoints cannot both be opened. One IPv4 and one
// IPv6 address may share a port.
func samePort(a, b endpoint) bool {
	if a.port != b.port || a.port == 0 {
		return false
	}
	x, errX := netip.ParseAddr(a.host)
	y, errY := netip.ParseAddr(b.host)
	return errX != nil || errY != nil || x.Is4() == y.Is4()
}

// nonroutable tells whether host means all interfaces, so that no client can
// connect to it from elsewhere.
func nonroutable(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "" || err == nil && a.IsUnspecified()
}

// listenerInput is all that decides about the listeners.
type listenerInput struct {
	listeners, advertised, protocols string
	controllers                      []string
	interBroker                      string
	hostname                         string // Stands in for "all interfaces".
}

// resolved is what comes of it.
type resolved struct {
	listeners   []Listener
	interBroker string
	notices     []string
}

// resolveListeners joins names, addresses and protocols.
func resolveListeners(in listenerInput) (resolved, error) {
	var r resolved
	eps, err := parseListeners(in.listeners)
	if err != nil {
		return r, &ValueError{Name: "listeners", Value: in.listeners, Reason: err.Error()}
	}
	advertised, err := parseListeners(in.advertised)
	if err != nil {
		return r, &ValueError{Name: "advertised.listeners", Value: in.advertised, Reason: err.Error()}
	}
	protocols, err := parseProtocolMap(in.protocols)
	if err != nil {
		return r, &ValueError{Name: "listener.security.protocol.map", Value: in.protocols, Reason: err.Error()}
	}
	eps, advertised = dropControllers(eps, advertised, in.controllers, &r)
	if len(eps) == 0 {
		return r, &ValueError{Name: "listeners", Value: in.listeners, Reason: "no listener for clients is left; name one, such as PLAINTEXT://127.0.0.1:9092"}
	}
	for i, a := range eps {
		for _, b := range eps[:i] {
			if samePort(a, b) {
				return r, &ValueError{Name: "listeners", Value: in.listeners, Reason: fmt.Sprintf("%s and %s have the same port %d", b.name, a.name, a.port)}
			}
		}
	}
	for _, a := range advertised {
		if !slices.ContainsFunc(eps, func(e endpoint) bool { return e.name == a.name }) {
			return r, &ValueError{Name: "advertised.listeners", Value: in.advertised, Reason: a.name + " is not in listeners"}
		}
	}
	for _, e := range eps {
		l, err := join(e, advertised, protocols, in, &r)
		if err != nil {
			return r, err
		}
		r.listeners = append(r.listeners, l)
	}
	r.interBroker, err = interBroker(in.interBroker, r.listeners)
	return r, err
}

// dropControllers leaves out what a KRaft controller would listen on.
func dropControllers(eps, advertised []endpoint, names []string, r *resolved) (_, _ []endpoint) {
	isController := func(e endpoint) bool {
		return e.name == "CONTROLLER" || slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, e.name) })
	}
	for _, e := range eps {
		if isController(e) {
			r.notices = append(r.notices, fmt.Sprintf("listener %s is not opened: there is no KRaft controller, metadata is in etcd", e))
		}
	}
	return slices.DeleteFunc(eps, isController), slices.DeleteFunc(advertised, isController)
}

// join makes one listener of its parts.
func join(e endpoint, advertised []endpoint, protocols map[string]string, in listenerInput, r *resolved) (Listener, error) {
	protocol, ok := protocols[e.name]
	if !ok {
		return Listener{}, &ValueError{
			Name: "listeners", Value: in.listeners,
			Reason: fmt.Sprintf("%s is not in listener.security.protocol.map; add %s:PLAINTEXT there", e.name, e.name),
		}
	}
	if protocol != "PLAINTEXT" {
		return Listener{}, &ValueError{Name: "listeners", Value: in.listeners, Reason: fmt.Sprintf("%s has the protocol %s: %s", e.name, protocol, plaintextOnly(value{text: protocol}))}
	}
	l := Listener{Name: e.name, Protocol: protocol, Host: e.host, Port: e.port, AdvertisedHost: e.host, AdvertisedPort: e.port}
	if i := slices.IndexFunc(advertised, func(a endpoint) bool { return a.name == e.name }); i >= 0 {
		a := advertised[i]
		if nonroutable(a.host) {
			return Listener{}, &ValueError{
				Name: "advertised.listeners", Value: in.advertised,
				Reason: fmt.Sprintf("clients cannot connect to %q; give a host name or address that they can reach, such as %s://broker1.example:%d", a.host, a.name, a.port),
			}
		}
		l.AdvertisedHost, l.AdvertisedPort = a.host, a.port
		if a.port == 0 {
			l.AdvertisedPort = e.port
		}
		return l, nil
	}
	if !nonroutable(e.host) {
		return l, nil
	}
	if in.hostname == "" {
		return Listener{}, &ValueError{
			Name: "listeners", Value: in.listeners,
			Reason: fmt.Sprintf("%s listens on all interfaces, so clients need an address; set advertised.listeners=%s://HOST:%d", e.name, e.name, e.port),
		}
	}
	l.AdvertisedHost = in.hostname
	r.notices = append(r.notices, fmt.Sprintf(
		"listener %s listens on all interfaces; clients are told to connect to %s (set advertised.listeners to change that)", e.name, in.hostname))
	return l, nil
}

// interBroker finds the listener that brokers use among themselves: the named
// one, else PLAINTEXT, else the first.
func interBroker(name string, ls []Listener) (string, error) {
	want := strings.ToUpper(strings.TrimSpace(name))
	for _, l := range ls {
		if l.Name == want || want == "" && l.Name == "PLAINTEXT" {
			return l.Name, nil
		}
	}
	if want != "" {
		return "", &ValueError{Name: "inter.broker.listener.name", Value: name, Reason: "it must be one of the names in listeners"}
	}
	return ls[0].Name, nil
}

// hostPort takes an address to listen on, or nothing.
func hostPort(v value) string {
	if v.text == "" {
		return ""
	}
	_, port, err := net.SplitHostPort(v.text)
	if n, convErr := strconv.Atoi(port); err != nil || convErr != nil || n < 0 || n > 65535 {
		return "must be host:port, such as 127.0.0.1:9644, or empty"
	}
	return ""
}

// endpoints takes addresses of etcd members.
func endpoints(v value) string {
	for _, e := range v.list {
		rest := e
		for _, scheme := range []string{"http://", "https://"} {
			rest = strings.TrimPrefix(rest, scheme)
		}
		host, port, err := net.SplitHostPort(rest)
		if n, convErr := strconv.Atoi(port); err != nil || convErr != nil || host == "" || n < 1 || n > 65535 {
			return "must be host:port or https://host:port, such as 10.0.0.1:2379"
		}
	}
	return ""
}

// keyPrefix takes the start of keys in etcd.
func keyPrefix(v value) string {
	if !strings.HasPrefix(v.text, "/") || strings.HasSuffix(v.text, "/") || strings.ContainsAny(v.text, " \t") {
		return "must start with / and not end with it, such as /mainstem"
	}
	return ""
}

package config

import (
	"slices"
	"strings"
)

// Settings that Mainstem cannot honour yet and that cost safety if they were
// silently ignored. They are refused wherever they appear.

// noPlugin allows only that nothing is loaded.
func noPlugin(v value) string {
	if v.text != "" {
		return "Mainstem loads no classes; remove the setting"
	}
	return ""
}

// noAuthorizer is its own check, since this one is the worst to lose unseen.
func noAuthorizer(v value) string {
	if v.text != "" {
		return "there is no access control yet: whoever can connect may do everything; remove the setting if that is right for you"
	}
	return ""
}

func mustBeFalse(v value) string {
	if v.num != 0 {
		return "not supported by Mainstem; leave it false"
	}
	return ""
}

func knownReporters(v value) string {
	for _, class := range v.list {
		if class != "" && !strings.HasSuffix(class, ".JmxReporter") {
			return "Mainstem loads no classes; metrics are at the address in mainstem.http.listener, path /metrics"
		}
	}
	return ""
}

func knownSelector(v value) string {
	known := []string{
		"", "org.apache.kafka.common.replica.LeaderSelector", "org.apache.kafka.common.replica.RackAwareReplicaSelector",
	}
	if !slices.Contains(known, v.text) {
		return "Mainstem loads no classes; known are LeaderSelector and RackAwareReplicaSelector of org.apache.kafka.common.replica"
	}
	return ""
}

func knownPrincipal(v value) string {
	if v.text != "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder" {
		return "Mainstem loads no classes; remove the setting"
	}
	return ""
}

// plaintextOnly is for settings that name a security protocol.
func plaintextOnly(v value) string {
	switch v.text {
	case "PLAINTEXT":
		return ""
	case "SSL", "SASL_PLAINTEXT", "SASL_SSL":
		return "only PLAINTEXT is served so far; use it, on a network that you trust"
	}
	return "must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"
}

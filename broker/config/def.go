package config

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Mode says where a broker config may be changed while the broker runs.
type Mode uint8

const (
	// ReadOnly configs change with a restart only.
	ReadOnly Mode = iota
	// PerListener configs may be set for one listener of one broker only.
	PerListener
	// PerBroker configs may be set for one broker, not for all at once.
	PerBroker
	// ClusterWide configs may be set for one broker and for all.
	ClusterWide
	// ClusterOnly configs may be set for all brokers at once only.
	ClusterOnly
)

// Dynamic tells whether DescribeConfigs shows the config as changeable.
func (m Mode) Dynamic() bool { return m != ReadOnly }

// Def is what is known of one config. It is immutable.
type Def struct {
	Name    string
	Type    kmsg.ConfigType
	Default string // "" when HasDefault is false.
	// HasDefault is false where Kafka's default is null.
	HasDefault bool
	Mode       Mode
	// Synonyms are the broker configs that stand in for this one, the most
	// important first. For a broker config they include its own name.
	Synonyms []string
	// Hidden configs are honoured, but not listed where they have their default.
	Hidden bool
	// Doc is one sentence about the config.
	Doc string

	check check
}

// Sensitive tells whether the value must not be shown.
func (d *Def) Sensitive() bool { return d.Type == passwordT }

// The types in short, for the tables.
const (
	boolT     = kmsg.ConfigTypeBoolean
	stringT   = kmsg.ConfigTypeString
	intT      = kmsg.ConfigTypeInt
	shortT    = kmsg.ConfigTypeShort
	longT     = kmsg.ConfigTypeLong
	doubleT   = kmsg.ConfigTypeDouble
	listT     = kmsg.ConfigTypeList
	classT    = kmsg.ConfigTypeClass
	passwordT = kmsg.ConfigTypePassword
)

// The modes in short, for the tables.
const (
	static      = ReadOnly
	perListener = PerListener
	perBroker   = PerBroker
	clusterWide = ClusterWide
	clusterOnly = ClusterOnly
)

// null marks a config without a default. It is no legal value.
const null = "\x00"

// row is one line of a table.
type row struct {
	name  string
	typ   kmsg.ConfigType
	def   string
	mode  Mode
	check check
	doc   string
}

func (r row) build() *Def {
	d := &Def{Name: r.name, Type: r.typ, Mode: r.mode, Doc: r.doc, check: r.check}
	if r.def != null {
		d.Default, d.HasDefault = r.def, true
	}
	return d
}

package admin

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// feature is a method whose feature is not served yet: why, and what the client is
// told.
type feature struct {
	reason string
	answer string
	call   func(r *rig) error
}

// notAdvertised is what the client says of a request that the broker does not
// advertise, without sending it.
const notAdvertised = "broker is too old"

// comesLater are the methods of features that are not served yet.
func comesLater() map[string]feature {
	all := map[string]feature{}
	add := func(reason string, calls map[string]func(r *rig) error) {
		for name, call := range calls {
			all[name] = feature{reason, notAdvertised, call}
		}
	}
	add("delegation tokens come with SASL", tokens())
	add("SCRAM users come with SASL", scrams())
	add("share groups come later", shares())
	for name, call := range acls() {
		all[name] = feature{"there is no authorizer, as on a Kafka without one", "SECURITY_DISABLED", call}
	}
	all["FindShareCoordinators"] = feature{"share groups come later", "INVALID_REQUEST", all["FindShareCoordinators"].call}
	return all
}

func acls() map[string]func(r *rig) error {
	every := kadm.NewACLs().AnyResource().Allow().AllowHosts().Operations(kadm.OpAny).ResourcePatternType(kadm.ACLPatternAny)
	return map[string]func(r *rig) error{
		"CreateACLs": func(r *rig) error {
			one := kadm.NewACLs().Topics("t").Allow("User:a").AllowHosts("*").Operations(kadm.OpRead)
			got, err := r.adm.CreateACLs(r.ctx, one)
			for _, answer := range got {
				err = errors.Join(err, answer.Err)
			}
			return err
		},
		"DescribeACLs": func(r *rig) error {
			got, err := r.adm.DescribeACLs(r.ctx, every)
			for _, answer := range got {
				err = errors.Join(err, answer.Err)
			}
			return err
		},
		"DeleteACLs": func(r *rig) error {
			got, err := r.adm.DeleteACLs(r.ctx, every)
			for _, answer := range got {
				err = errors.Join(err, answer.Err)
			}
			return err
		},
	}
}

// joined drops an answer that has only its error to tell.
func joined[R any](_ R, err error) error { return err }

func tokens() map[string]func(r *rig) error {
	return map[string]func(r *rig) error{
		"CreateDelegationToken": func(r *rig) error {
			return joined(r.adm.CreateDelegationToken(r.ctx, kadm.CreateDelegationToken{MaxLifetime: time.Hour}))
		},
		"DescribeDelegationTokens": func(r *rig) error { return joined(r.adm.DescribeDelegationTokens(r.ctx)) },
		"RenewDelegationToken":     func(r *rig) error { return joined(r.adm.RenewDelegationToken(r.ctx, []byte("h"), time.Hour)) },
		"ExpireDelegationToken":    func(r *rig) error { return joined(r.adm.ExpireDelegationToken(r.ctx, []byte("h"), time.Hour)) },
	}
}

func scrams() map[string]func(r *rig) error {
	return map[string]func(r *rig) error{
		"DescribeUserSCRAMs": func(r *rig) error { return joined(r.adm.DescribeUserSCRAMs(r.ctx)) },
		"AlterUserSCRAMs": func(r *rig) error {
			return joined(r.adm.AlterUserSCRAMs(r.ctx, nil, []kadm.UpsertSCRAM{{User: "u", Mechanism: kadm.ScramSha256, Iterations: 4096, Password: "p"}}))
		},
	}
}

func shares() map[string]func(r *rig) error {
	return map[string]func(r *rig) error{
		"FindShareCoordinators": func(r *rig) error {
			return r.adm.FindShareCoordinators(r.ctx, "s").Error()
		},
		"DescribeShareGroups":       func(r *rig) error { return joined(r.adm.DescribeShareGroups(r.ctx, "s")) },
		"DescribeShareGroupOffsets": func(r *rig) error { return joined(r.adm.DescribeShareGroupOffsets(r.ctx, "s")) },
		"AlterShareGroupOffsets": func(r *rig) error {
			os := kadm.Offsets{}
			os.AddOffset("t", 0, 0, -1)
			return joined(r.adm.AlterShareGroupOffsets(r.ctx, "s", os))
		},
		"DeleteShareGroupOffsets": func(r *rig) error { return joined(r.adm.DeleteShareGroupOffsets(r.ctx, "s", "t")) },
	}
}

package controller

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mainstem/mainstem/controller/meta"
)

// newID makes a random UUID whose text does not start with '-', which command lines take for an option.
func newID() (id [16]byte) {
	for {
		_, _ = rand.Read(id[:]) // It cannot fail.
		id[6] = id[6]&0x0f | 0x40
		id[8] = id[8]&0x3f | 0x80
		if meta.FormatID(id)[0] != '-' {
			return id
		}
	}
}

// checkEmbedded refuses to make a new embedded etcd for a directory that has belonged to a cluster.
func checkEmbedded(o *Options) error {
	exists, err := embeddedExists(o.Dir)
	if err != nil {
		return fmt.Errorf("look for the embedded etcd: %w", err)
	}
	if o.WantClusterID == "" && !o.HasData {
		return nil
	}
	gone := etcdDir(o.Dir)
	if exists {
		// etcd would begin a new log, and take the changes of which it keeps the
		// old numbers in its database for made already.
		gone = walDir(o.Dir)
		if exists, err = hasWAL(o.Dir); err != nil {
			return fmt.Errorf("look for the embedded etcd's log: %w", err)
		}
	}
	if exists {
		return nil
	}
	return &IdentityError{
		Want:  o.WantClusterID,
		Cause: fmt.Sprintf("%s is gone, but the data directory %s %s", gone, o.Dir, belonging(o)),
		Remedy: "bring the folder etcd back from a backup of this data directory, or name the external etcd in etcd.endpoints; " +
			"to give up the data, start with an empty directory",
	}
}

func belonging(o *Options) string {
	if o.WantClusterID == "" {
		return "holds data"
	}
	return "belongs to cluster " + o.WantClusterID
}

// identify finds out which cluster etcd holds, and makes one if there is none and none is expected.
func identify(ctx context.Context, etcd *clientv3.Client, o *Options) (id string, err error) {
	key := meta.Keys{Prefix: o.Prefix}.Cluster()
	for {
		resp, err := etcd.Get(ctx, key)
		if err != nil {
			return "", err
		}
		if len(resp.Kvs) > 0 {
			id, err := meta.DecodeCluster(resp.Kvs[0].Value)
			if err != nil {
				return "", &unreadableError{fmt.Errorf("read key %q: %w", key, err)}
			}
			return id, matchIdentity(o, id)
		}
		if o.WantClusterID != "" || o.HasData {
			return "", missingIdentity(ctx, etcd, o)
		}
		puts := []clientv3.Op{clientv3.OpPut(key, string(meta.EncodeCluster(meta.FormatID(newID()))))}
		for name, level := range o.Levels {
			puts = append(puts, clientv3.OpPut(meta.Keys{Prefix: o.Prefix}.Feature(name), string(meta.EncodeNumber(int64(level)))))
		}
		_, err = etcd.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).Then(puts...).Commit()
		if err != nil {
			return "", err
		}
	}
}

func matchIdentity(o *Options, found string) error {
	switch {
	case o.WantClusterID == found:
		return nil
	case o.WantClusterID != "":
		return &IdentityError{
			Want: o.WantClusterID, Found: found,
			Cause: fmt.Sprintf("%s (prefix %s) holds cluster %s, but the data directory %s belongs to cluster %s",
				o.where(), o.Prefix, found, o.Dir, o.WantClusterID),
			Remedy: "set etcd.endpoints and the key prefix to those of the data's own cluster, or start with an empty directory",
		}
	case o.HasData:
		return &IdentityError{
			Found:  found,
			Cause:  fmt.Sprintf("the data directory %s holds data but does not say of which cluster; etcd holds cluster %s", o.Dir, found),
			Remedy: "bring the directory back from a backup as a whole, or start with an empty directory",
		}
	default:
		return nil
	}
}

// missingIdentity tells an etcd that is empty from one that holds something else.
func missingIdentity(ctx context.Context, etcd *clientv3.Client, o *Options) error {
	e := &IdentityError{
		Want: o.WantClusterID,
		Cause: fmt.Sprintf("%s has no cluster under the prefix %s, but the data directory %s %s",
			o.where(), o.Prefix, o.Dir, belonging(o)),
		Remedy: "check etcd.endpoints and the key prefix, and bring etcd back from a backup if it was wiped; " +
			"to give up the data, start with an empty directory",
	}
	resp, err := etcd.Get(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithLimit(1), clientv3.WithKeysOnly())
	switch {
	case err != nil: // Perhaps not allowed to look outside of the prefix.
	case len(resp.Kvs) == 0:
		e.Cause += " (this etcd is empty)"
	default:
		e.Cause += fmt.Sprintf(" (this etcd is not empty: it has the key %q)", resp.Kvs[0].Key)
	}
	return e
}

// unreadableError marks a value in etcd that this version cannot read.
type unreadableError struct{ error }

func (e *unreadableError) Unwrap() error { return e.error }

func isUnreadable(err error) bool {
	var u *unreadableError
	return errors.As(err, &u)
}

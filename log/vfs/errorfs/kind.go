package errorfs

import "strings"

// Kind is a set of kinds of operations.
type Kind uint32

// The kinds of operations, one for each method of vfs.FS and vfs.File.
const (
	Create Kind = 1 << iota
	Open
	OpenRW
	Remove
	Rename
	MkdirAll
	List
	Stat
	SyncDir
	Lock
	Space
	Read
	Write // WriteAt and WritevAt.
	Sync
	SyncData
	Allocate
	Truncate
	Size
	Close
)

// Sets of kinds.
const (
	// All is every operation.
	All = Close<<1 - 1
	// Syncs are the operations that promise durability.
	Syncs = Sync | SyncData | SyncDir
	// Mutations are the operations that change something or promise that it lasts.
	Mutations = Create | Remove | Rename | MkdirAll | Write | Allocate | Truncate | Syncs
	// Reads are the operations that change nothing.
	Reads = Open | List | Stat | Space | Read | Size
)

// String names the kinds.
func (k Kind) String() string {
	names := []string{
		"create", "open", "openrw", "remove", "rename", "mkdirall", "list", "stat", "syncdir", "lock", "space",
		"read", "write", "sync", "syncdata", "allocate", "truncate", "size", "close",
	}
	var in []string
	for i, name := range names {
		if k&(1<<i) != 0 {
			in = append(in, name)
		}
	}
	return strings.Join(in, "|")
}

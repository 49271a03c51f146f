// Package vfs is the storage engine's door to the disk: a small filesystem interface, its implementation over
// the operating system, and Mem, a filesystem in memory that can lose power.
//
// It is the only package under log that imports os.
//
// # Invariants
//
//   - Data of a file is durable only after Sync or SyncData has returned nil. A sync that failed says nothing good about
//     any byte written since the last one that succeeded, and a later success does not change that.
//   - A name (created, renamed, removed) is durable only after SyncDir of its directory has returned nil. Directories made
//     by MkdirAll are durable when it returns.
//   - Errors wrap the operating system's, so errors.Is works with fs.ErrNotExist, fs.ErrExist and ErrNoSpace whatever the
//     implementation.
//   - A Sync covers the writes that returned before it was called.
//
// # Lock order
//
// Mem.mu before inode.mu. No lock is held while the caller's code runs.
package vfs

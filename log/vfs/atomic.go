package vfs

import (
	"fmt"
	"path/filepath"
)

// tempSuffix ends the name under which WriteAtomic prepares a file. What a crash leaves behind under such a name is junk.
const tempSuffix = ".tmp"

// WriteAtomic replaces the file's content so that a crash leaves either the old content or the new one, and makes the new
// one durable: it writes a temporary file beside it, syncs it, renames it and syncs the directory.
func WriteAtomic(fs FS, name string, data []byte) error {
	temp := name + tempSuffix
	if err := writeSynced(fs, temp, data); err != nil {
		_ = fs.Remove(temp) // The first error is the one to tell; junk is found by its name.
		return err
	}
	if err := fs.Rename(temp, name); err != nil {
		_ = fs.Remove(temp)
		return fmt.Errorf("rename %s: %w", temp, err)
	}
	if err := fs.SyncDir(filepath.Dir(name)); err != nil {
		return fmt.Errorf("sync directory of %s: %w", name, err)
	}
	return nil
}

func writeSynced(fs FS, name string, data []byte) (err error) {
	f, err := fs.Create(name)
	if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("close %s: %w", name, cerr)
		}
	}()
	if _, err := f.WriteAt(data, 0); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", name, err)
	}
	return nil
}

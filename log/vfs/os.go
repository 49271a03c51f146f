package vfs

// OS returns the operating system's filesystem.
func OS() FS { panic("skeleton") }

package controller

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ownerOf names the directory on this running kernel: whoever holds its lock knows that any other process that held
// it is dead. "" when it cannot be told.
func ownerOf(dir string) string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	var st unix.Stat_t
	if err != nil || unix.Stat(dir, &st) != nil {
		return ""
	}
	return fmt.Sprintf("%s:%x:%x", strings.TrimSpace(string(boot)), st.Dev, st.Ino)
}

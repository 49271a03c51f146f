// Package badinput shows that what a user can get wrong ends in one clear line
// with cause and remedy and its own exit code, and that a broker that is stopped
// or paused goes on where it was.
package badinput

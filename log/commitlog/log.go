package commitlog

import "github.com/mainstem/mainstem/log/vfs"

// Log is the shared commitlog.
type Log struct{ fs vfs.FS }

// Open reads the manifest, or makes the first one.
func Open(o Options) (*Log, error) { panic("skeleton") }

// Manifest returns what the manifest says now.
func (l *Log) Manifest() ManifestInfo { panic("skeleton") }

// Scan reads the frames of a sealed segment in order.
func (l *Log) Scan(seg SegmentID, fn func(Frame) error) error { panic("skeleton") }

// Recover scans the open tail and readies the log for appends.
func (l *Log) Recover(fn func(Frame) error) error { panic("skeleton") }

// MaxPayload returns the largest payload that can be reserved.
func (l *Log) MaxPayload() int { panic("skeleton") }

// Reservation is room in the log.
type Reservation struct {
	log    *Log
	bytes  int
	frames int
}

// Reserve takes room in the log. Only this may wait.
func (l *Log) Reserve(b Budget) (Reservation, error) { panic("skeleton") }

// Place appends a frame.
func (r *Reservation) Place(h Header, tag *Tag, payload ...[]byte) (Place, error) { panic("skeleton") }

// Release gives back what was not placed.
func (r *Reservation) Release() { panic("skeleton") }

// Commit waits until everything below upto is written or synced.
func (l *Log) Commit(upto LSN, need Durability) error { panic("skeleton") }

// Kick has the background writer write what nobody waits for.
func (l *Log) Kick() { panic("skeleton") }

// Durable returns the end of what is synced.
func (l *Log) Durable() LSN { panic("skeleton") }

// Written returns the end of what is written.
func (l *Log) Written() LSN { panic("skeleton") }

// Next returns the end of what is placed.
func (l *Log) Next() LSN { panic("skeleton") }

// Pinned holds bytes of the log.
type Pinned struct{}

// Buffers returns the pinned bytes.
func (p *Pinned) Buffers() [][]byte { panic("skeleton") }

// Size returns how many bytes are pinned.
func (p *Pinned) Size() int { panic("skeleton") }

// Release gives the bytes back.
func (p *Pinned) Release() { panic("skeleton") }

// Pin adds payloads to p.
func (l *Log) Pin(p *Pinned, places []Place) (int, error) { panic("skeleton") }

// ReadHead reads the first bytes of a payload.
func (l *Log) ReadHead(p Place, dst []byte) (int, error) { panic("skeleton") }

// AttachIndex names a sealed segment's index file in the manifest.
func (l *Log) AttachIndex(seg SegmentID, file string) error { panic("skeleton") }

// SetCheckpoint names the checkpoint in the manifest.
func (l *Log) SetCheckpoint(file string, upto LSN) error { panic("skeleton") }

// Drop takes segments out of the log.
func (l *Log) Drop(segs []SegmentID) error { panic("skeleton") }

// Quarantine lists a span as corrupt.
func (l *Log) Quarantine(e *CorruptError) error { panic("skeleton") }

// WithReserve runs fn, and once more with the reserve file removed if it met a full disk.
func (l *Log) WithReserve(fn func() error) error { panic("skeleton") }

// Seal closes the open segment if it has frames.
func (l *Log) Seal() error { panic("skeleton") }

// Poisoned returns the error that poisoned the log.
func (l *Log) Poisoned() error { panic("skeleton") }

// Done is closed when the log is poisoned.
func (l *Log) Done() <-chan struct{} { panic("skeleton") }

// Stats returns counters.
func (l *Log) Stats() Stats { panic("skeleton") }

// Close commits everything and marks the log clean.
func (l *Log) Close() error { panic("skeleton") }

// IndexName returns the name of a segment's index file.
func IndexName(seg SegmentID) string { return seg.String() + ".index" }

// CheckpointName returns the name of a checkpoint file.
func CheckpointName(upto LSN) string { panic("skeleton") }

func frameSize(payload int) int { return (80 + payload + 7) &^ 7 }

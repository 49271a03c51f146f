package replica

import "github.com/mainstem/mainstem/log"

// HighWatermark is the end of what is committed: synced by all in-sync replicas.
func (p *Partition) HighWatermark() int64 { return p.hw.Load() }

// LastStable is the end of what read_committed readers may see.
func (p *Partition) LastStable() int64 { return p.stableBelow(p.hw.Load()) }

// stableBelow is the last stable offset when the high watermark is hw.
func (p *Partition) stableBelow(hw int64) int64 {
	if first, open := p.log.FirstUnstable(); open && first < hw {
		return first
	}
	return hw
}

// Advanced is to be the store's Events.Advanced: it moves the watermarks of
// partitions of which more has become durable, and wakes who waits for that.
func Advanced(logs []*log.Partition) {
	for _, l := range logs {
		if p, ok := l.Owner().(*Partition); ok {
			p.advance()
		}
	}
}

// advance raises the high watermark to the smallest end over the in-sync
// replicas. It stays where it is while fewer are in sync than min.insync.replicas
// asks for: what one replica alone has is not yet committed then (KIP-966).
func (p *Partition) advance() {
	r := p.role.Load()
	if r == nil || !r.leads || !r.alone || len(r.isr) < p.minISR(r) {
		return
	}
	if p.raise(p.log.Durable()) {
		p.wake()
	}
}

func (p *Partition) raise(to int64) bool {
	for {
		hw := p.hw.Load()
		if to <= hw {
			return false
		}
		if p.hw.CompareAndSwap(hw, to) {
			p.log.SetHighWatermark(to)
			return true
		}
	}
}

// startMoved wakes watches if the log start is not the one they know.
func (p *Partition) startMoved() {
	if start := p.log.Start(); p.start.Swap(start) != start {
		p.wake()
	}
}

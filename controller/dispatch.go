package controller

import (
	"sync"

	"github.com/mainstem/mainstem/controller/meta"
)

// dispatcher hands images to subscribers, in order, from one goroutine. It never makes the watch wait.
type dispatcher struct {
	wake chan struct{} // holds one token while there is work
	stop chan struct{}

	mu      sync.Mutex
	queue   []step
	joining []joining
	rev     int64         // taken in by all subscribers
	changed chan struct{} // closed when rev changes

	// Of the goroutine.
	image *meta.Image
	subs  []func(*meta.Image, meta.Delta)
}

// step is one image and what it changed. A delta of nil: nothing.
type step struct {
	image *meta.Image
	delta *meta.Delta
}

type joining struct {
	fn     func(*meta.Image, meta.Delta)
	joined chan struct{}
}

func newDispatcher() *dispatcher {
	return &dispatcher{
		wake: make(chan struct{}, 1), stop: make(chan struct{}), changed: make(chan struct{}), image: meta.Empty(),
	}
}

// publish queues the next image.
func (d *dispatcher) publish(image *meta.Image, delta *meta.Delta) {
	d.mu.Lock()
	d.queue = append(d.queue, step{image, delta})
	d.mu.Unlock()
	d.poke()
}

// subscribe returns when fn has had the present image, or the dispatcher has ended.
func (d *dispatcher) subscribe(fn func(*meta.Image, meta.Delta)) {
	j := joining{fn, make(chan struct{})}
	d.mu.Lock()
	d.joining = append(d.joining, j)
	d.mu.Unlock()
	d.poke()
	select {
	case <-j.joined:
	case <-d.stop:
	}
}

func (d *dispatcher) poke() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// applied is the revision that all subscribers have taken in, and what is closed when it changes.
func (d *dispatcher) applied() (int64, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rev, d.changed
}

// end makes run return.
func (d *dispatcher) end() { close(d.stop) }

func (d *dispatcher) run() {
	for {
		select {
		case <-d.stop:
			return
		case <-d.wake:
		}
		d.mu.Lock()
		queue, joining := d.queue, d.joining
		d.queue, d.joining = nil, nil
		d.mu.Unlock()
		for _, s := range queue {
			d.take(s)
		}
		for _, j := range joining {
			j.fn(d.image, meta.Diff(meta.Empty(), d.image))
			d.subs = append(d.subs, j.fn)
			close(j.joined)
		}
	}
}

// take shows one image to all and then says so.
func (d *dispatcher) take(s step) {
	d.image = s.image
	if s.delta != nil && !s.delta.IsEmpty() {
		for _, fn := range d.subs {
			fn(s.image, *s.delta)
		}
	}
	d.mu.Lock()
	d.rev = s.image.Revision()
	close(d.changed)
	d.changed = make(chan struct{})
	d.mu.Unlock()
}

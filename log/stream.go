package log

// streamBytes is how much More gets at once, unless a batch is larger: what it
// reads and checks is still in the processor's cache when it is sent.
const streamBytes = 512 << 10

// fit counts the places from one on that go into a number of bytes, at least one,
// and their bytes.
func (b *Batches) fit(from, limit int) (upto, size int) {
	for upto = from; upto < len(b.places); upto++ {
		n := int(b.places[upto].Size)
		if upto > from && size+n > limit {
			break
		}
		size += n
	}
	return upto, size
}

// Rest returns the number of bytes that More has still to get. They count in
// Size.
func (b *Batches) Rest() int { return b.rest }

// More gets the next batches of a Stream, at least one. What Buffers or More has
// returned before is no longer valid. What is damaged becomes a hole, as with
// Read, and is an error here: whoever was promised these batches has to ask again.
// REQUIRES: Rest is not zero.
func (b *Batches) More() ([][]byte, error) {
	b.pinned.Clear()
	upto, size := b.fit(b.done, streamBytes)
	n, err := b.store.log.Pin(&b.pinned, b.places[b.done:upto])
	if err != nil {
		return nil, b.part.pinFailed(b.ends[b.done+n], err)
	}
	b.done, b.rest = upto, b.rest-size
	return b.pinned.Buffers(), nil
}

// Discard gives the memory back that Buffers or More returned last.
func (b *Batches) Discard() { b.pinned.Clear() }

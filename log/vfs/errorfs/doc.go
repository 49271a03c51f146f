// Package errorfs wraps a filesystem for tests: it counts operations, makes chosen ones fail, cuts the power at the n-th,
// and can make syncs do nothing, so that tests of crash safety can be shown to notice.
//
// A test that wants every operation to fail once runs its script again and again:
//
//	for n := 1; ; n++ {
//		fsys := errorfs.New(mem)
//		fail := fsys.Fail(errorfs.Rule{Kinds: errorfs.Mutations, After: n - 1})
//		err := script(fsys)
//		if fail.Hits() == 0 {
//			break // There is no n-th operation.
//		}
//		require.ErrorIs(t, err, errorfs.ErrInjected)
//	}
//
// # Invariants
//
//   - An operation that fails by a rule has no effect, but for a short write (Rule.Short) and a sync, which is lost (vfs.Mem
//     then drops what it should have made durable, as a kernel does).
//   - Operations are counted when they start, whether they fail or not.
//
// # Lock order
//
// FS.mu is innermost and never held during an operation.
package errorfs

// Package memory is the store of one process.
//
// Readers look a key up in a hash table of atomic pointers: no lock, no
// allocation. Writers take one mutex for what little they do after their entry
// is packed. Eviction is S3-FIFO (Yang et al., SOSP 2023) with a limit in bytes
// that is made room for before an entry comes in, so that it holds at every
// moment. docs/design/0003-memory-store.md has the measurements behind this.
//
// The store reads no clock and starts no goroutine but the one that Run is
// called on: what it does depends only on the calls and the times they give.
package memory

// Package snapshot provides linear memory for WebAssembly guests that can be
// reset, within microseconds, to its state at one moment.
//
// An [Image] is the content of a memory at that moment, usually after the
// guest's initialisation. A [Memory] starts with the content of its image and
// is reset to it by [Memory.Reset]. The package knows nothing of plugins.
//
// On Linux an image is a sealed memfd, and a memory is one reservation of address space
// as large as it may become, so that growing neither copies nor moves. The image is
// mapped at its start, copy-on-write: instances share the pages that they didn't write.
// All reservations are in an address range of their own, with gaps between them. Reset
// asks the kernel which pages the memory no longer shares (the PAGEMAP_SCAN ioctl of
// Linux 6.7; before it, /proc/self/pagemap) and copies those back. Elsewhere a memory
// is a slice, and a reset copies all of it.
//
// Resources: up to three mappings for each memory; one descriptor for each image, one for the process. Address space is
// reserved without access, so that it isn't charged, whatever vm.overcommit_memory is (RLIMIT_AS counts it);
// vm.max_map_count (65,530 by default) allows some 20,000 memories.
//
// What a guest can still observe from one run to the next is the size of its
// memory, which cannot shrink. Globals, tables and other state of an instance
// are the responsibility of its owner.
package snapshot

// PageBytes is the unit in which linear memory grows.
const PageBytes = 64 << 10

// MaxBytes is the maximum size of a memory: a page less than 4 GiB, since the
// end of a memory of 4 GiB has no 32-bit address.
const MaxBytes = 4<<30 - PageBytes

// Stats describe what a reset did.
type Stats struct {
	// Written is how many pages of the operating system, mostly of 4 KiB,
	// differed from the image and were written back. It is zero after a drop or
	// a full copy, which don't look.
	Written int
	// Private is how many pages the memory has for itself after the reset: the
	// cost of an idle instance.
	Private int
	Method  Method
	// Grown is set while the memory is larger than initially. The guest can see
	// that; nothing else of earlier runs remains.
	Grown bool
}

// Method is a way to reset a memory.
type Method uint8

// The methods, from the fastest to the slowest.
const (
	// ByScan finds private pages by the PAGEMAP_SCAN ioctl.
	ByScan Method = iota
	// ByPagemap finds them in /proc/self/pagemap, 8 bytes for each page.
	ByPagemap
	// ByDrop makes the kernel drop all private pages: MADV_DONTNEED.
	ByDrop
	// ByCopy copies the whole image.
	ByCopy
)

// String returns the name of the method.
func (m Method) String() string {
	switch m {
	case ByScan:
		return "scan"
	case ByPagemap:
		return "pagemap"
	case ByDrop:
		return "drop"
	default:
		return "copy"
	}
}

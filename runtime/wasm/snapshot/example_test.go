package snapshot_test

import (
	"fmt"

	"github.com/jobhost/jobhost/runtime/wasm/snapshot"
)

// A memory begins as its image and is put back to it after each job. A guest
// gets it through experimental.WithMemoryAllocator of wazero.
func Example() {
	initialised := make([]byte, 2*snapshot.PageBytes)
	copy(initialised, "as after the start")
	image, err := snapshot.NewImage(initialised)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer image.Close()
	memory, err := snapshot.New(1<<20, image)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer memory.Close()

	copy(memory.Bytes(), "what a job leaves behind")
	if _, err := memory.Reset(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.18s\n", memory.Bytes())
	// Output: as after the start
}

package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestImage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		pages  int // of linear memory
		at     int // where a byte is set; negative = nowhere
		stored int // pages of the operating system
	}{
		{"no memory", 0, -1, 0},
		{"zeros", 2, -1, 0},
		{"the first byte", 2, 0, 1},
		{"the last byte of a page", 2, page - 1, 1},
		{"the first byte of the next", 2, page, 2},
		{"the last byte", 2, 2*PageBytes - 1, 2 * PageBytes / page},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			content := make([]byte, tc.pages*PageBytes)
			if tc.at >= 0 {
				content[tc.at] = 1
			}
			want := bytes.Clone(content)
			i := testImage(t, content)
			if tc.at >= 0 {
				content[tc.at] = 2 // the image has a copy
			}
			if i.Size() != len(content) || len(i.content()) != tc.stored*page {
				t.Errorf("%d bytes, of which %d are stored", i.Size(), len(i.content()))
			}
			for _, method := range methods() {
				m := testMemory(t, 4*PageBytes, i, method)
				if !bytes.Equal(m.Bytes(), want) {
					t.Errorf("%v: the memory is not as the image", method)
				}
			}
		})
	}
}

func TestImageErrors(t *testing.T) {
	t.Parallel()
	if _, err := NewImage(make([]byte, PageBytes+1)); err == nil || !strings.HasPrefix(err.Error(), "make an image: ") {
		t.Errorf("of an odd size: %v", err)
	}
	i, err := NewImage(make([]byte, 2*PageBytes))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(PageBytes, i); err == nil {
		t.Error("a memory smaller than its image was made")
	}
	for range 2 {
		if err := i.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if _, err := New(4*PageBytes, i); !errors.Is(err, ErrClosed) {
		t.Errorf("a memory of a closed image: %v", err)
	}
}

// TestImageOutlived resets a memory whose image was closed before.
func TestImageOutlived(t *testing.T) {
	t.Parallel()
	for _, method := range methods() {
		t.Run(method.String(), func(t *testing.T) {
			t.Parallel()
			content := bytes.Repeat([]byte{7}, PageBytes)
			i, err := NewImage(content)
			if err != nil {
				t.Fatal(err)
			}
			m := testMemory(t, 2*PageBytes, i, method)
			if err := i.Close(); err != nil {
				t.Fatal(err)
			}
			clear(m.Bytes())
			reset(t, m)
			if !bytes.Equal(m.Bytes(), content) {
				t.Error("the image is gone")
			}
		})
	}
}

// TestHammer makes, uses, resets and closes memories of images that are being
// closed, from several goroutines.
func TestHammer(t *testing.T) {
	t.Parallel()
	content := make([]byte, 2*PageBytes)
	for at := range content {
		content[at] = byte(at>>8) | 1
	}
	for range 20 {
		i, err := NewImage(content)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for n := range 10 {
					if err := useMemory(i, content, byte(10*g+n)); errors.Is(err, ErrClosed) {
						return
					} else if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Go(func() {
			if err := i.Close(); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		if i.users != 0 {
			t.Errorf("%d users are left", i.users)
		}
	}
}

// useMemory runs three jobs in a memory of an image.
func useMemory(i *Image, content []byte, mark byte) error {
	m, err := New(4*PageBytes, i)
	if err != nil {
		return err
	}
	for n := range 3 {
		b := m.Reallocate(uint64(len(content) + n*PageBytes))
		for at := int(mark); at < len(b); at += 3 * page {
			b[at] = mark
		}
		if _, err := m.Reset(); err != nil {
			return err
		}
		if !bytes.Equal(b[:len(content)], content) || !isZeros(b[len(content):]) {
			return fmt.Errorf("after reset %d the memory is not as the image", n)
		}
	}
	return m.Close()
}

// TestImageOfMemory: an image of a large memory of which little was used.
func TestImageOfMemory(t *testing.T) {
	t.Parallel()
	const size = 256 << 20
	for _, method := range methods() {
		if method == ByCopy {
			continue // all of it would be there
		}
		t.Run(method.String(), func(t *testing.T) {
			t.Parallel()
			m := testMemory(t, size, nil, method)
			if m.Reallocate(size) == nil {
				t.Fatal("there is no room")
			}
			b := m.Bytes()
			b[0], b[size/2+5], b[size/2+page], b[3*size/4] = 1, 2, 3, 0 // the last of which changes nothing
			i, err := m.Image()
			if err != nil {
				t.Fatal(err)
			}
			defer i.Close()
			if got := i.content(); i.Size() != size || len(got) != size/2+2*page || got[0] != 1 || got[size/2+5] != 2 || got[size/2+page] != 3 {
				t.Errorf("%d bytes, of which %d are stored", i.Size(), len(got))
			}
			if method == ByDrop {
				return // which can't tell what was used
			}
			used := 0
			for _, s := range m.backing.used(size) {
				used += s.end - s.start
			}
			if used != 4*page {
				t.Errorf("the image made the kernel fetch all pages: %d KiB are there", used>>10)
			}
			of := testMemory(t, size, i, method)
			again, err := of.Image()
			if err != nil || again.Size() != size || len(again.content()) != len(i.content()) {
				t.Errorf("of a memory with an image: %+v, %v", again, err)
			}
			if err == nil {
				_ = again.Close()
			}
		})
	}
	closed := testMemory(t, PageBytes, nil, methods()[0])
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := closed.Image(); !errors.Is(err, ErrClosed) {
		t.Errorf("of a closed memory: %v", err)
	}
}

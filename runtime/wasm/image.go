package wasm

import (
	"context"
	"errors"
	"fmt"
)

// image is the state of a plugin after its initialisation: instances are copied
// from it, and reset to it.
type image struct {
	bodies     []*likeness
	remembered any // the ABI's part
}

// look makes an image of an instance that was just initialised.
func (i *Instance) look() (*image, error) {
	img := &image{remembered: i.guest.remember()}
	for _, b := range i.bodies {
		l, err := b.look()
		if err != nil {
			return nil, errors.Join(err, img.close())
		}
		img.bodies = append(img.bodies, l)
	}
	return img, nil
}

// beginning returns the plugin's image. The first call creates it from a newly
// initialised instance, which is then discarded.
func (p *Plugin) beginning(ctx context.Context) (*image, error) {
	if img := p.image.Load(); img != nil {
		return img, nil
	}
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the first start of the guest: %w", context.Cause(ctx))
	}
	if img := p.image.Load(); img != nil {
		return img, nil
	}
	i, err := p.initialised(ctx)
	if err != nil {
		return nil, err
	}
	img, err := i.look()
	if err = errors.Join(err, i.Close(ctx)); err != nil {
		return nil, err
	}
	p.image.Store(img)
	return img, nil
}

// restore resets an instance. It reports whether that is worth it, or the
// instance is better replaced.
func (i *Instance) restore() (keep bool, err error) {
	for n, b := range i.bodies {
		if b.outgrown() {
			return false, nil
		}
		if err := b.restore(i.image.bodies[n]); err != nil {
			return false, err
		}
	}
	return i.guest.reset(i.image.remembered), nil
}

func (img *image) close() error {
	var errs []error
	for _, l := range img.bodies {
		errs = append(errs, l.memory.Close())
	}
	return errors.Join(errs...)
}

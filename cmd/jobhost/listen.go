package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jobhost/jobhost/host/manifest"
)

// addressFile is where a host writes its address that the manifest doesn't tell, so that
// commands find it.
func addressFile(h *manifest.Host) string { return filepath.Join(h.Data, "listen") }

// listen opens what the API listens on. If the address is taken and is spare, any free
// port of this machine does.
func listen(ctx context.Context, h *manifest.Host, spare string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", h.Listen)
	taken := errors.Is(err, syscall.EADDRINUSE) && h.Listen == spare
	if taken {
		listener, err = config.Listen(ctx, "tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, listenError(h.Listen, err)
	}
	if taken || listenURL(h.Listen) == "" {
		err = writeAddress(h, listener.Addr())
	} else if err = os.Remove(addressFile(h)); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("tell commands where the host listens: %w", err), listener.Close())
	}
	return listener, nil
}

func writeAddress(h *manifest.Host, addr net.Addr) error {
	if err := os.MkdirAll(h.Data, 0o700); err != nil {
		return err
	}
	return os.WriteFile(addressFile(h), []byte(addr.String()+"\n"), 0o600)
}

// writtenURL returns where the host of a manifest said that it listens, if the manifest
// doesn't tell; "" if it didn't.
func writtenURL(h *manifest.Host) string {
	if url := listenURL(h.Listen); url != "" && url != defaultAddr {
		return ""
	}
	data, err := os.ReadFile(addressFile(h))
	if err != nil {
		return ""
	}
	addr := strings.TrimSpace(string(data))
	if host, _, err := net.SplitHostPort(addr); err != nil || net.ParseIP(host) == nil {
		return ""
	}
	return listenURL(addr)
}

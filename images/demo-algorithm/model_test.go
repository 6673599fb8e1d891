// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestServesModel expects the digest of the model in answers.
func TestServesModel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "model.bin")
	if err := os.WriteFile(file, []byte("weights"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Another may take the port before the server does; then the server says so.
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, terminate := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, slog.New(slog.DiscardHandler), Options{Listen: address, Version: "v1", ModelFile: file, Drain: time.Second})
	}()
	await(t, func() bool { return get(t.Context(), "http://"+address+"/healthz") == http.StatusOK })
	// printf weights | sha256sum
	const want = `"modelDigest":"sha256:9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c"`
	if got := body(t.Context(), "http://"+address+"/predict"); !strings.Contains(got, want) {
		t.Errorf("want an answer with %s, got %s", want, got)
	}
	terminate()
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
}

func TestMissingModel(t *testing.T) {
	for name, file := range map[string]string{"NoFile": filepath.Join(t.TempDir(), "model.bin"), "AFolder": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), slog.New(slog.DiscardHandler), Options{Listen: "127.0.0.1:0", ModelFile: file})
			if err == nil || !strings.Contains(err.Error(), "cannot load the model") || !strings.Contains(err.Error(), file) {
				t.Errorf("run with the model %s: want an error that names it, got %v", file, err)
			}
		})
	}
}

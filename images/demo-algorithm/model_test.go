// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/images/demo-training/model"
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

func TestLoadModel(t *testing.T) {
	trained, err := model.Model{Version: "fraud-3", Steps: 20, ErrorRate: 0.25}.Write()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason  string
		content []byte
		want    model.Model
	}{
		"Trained": {reason: "Answers name the version of a model that demo-training wrote.", content: trained, want: model.Model{Version: "fraud-3", Steps: 20, ErrorRate: 0.25}},
		"Other":   {reason: "Any other file is a model, too.", content: []byte(`{"version": "7"}`)},
		"Large":   {reason: "A large file is read to its end.", content: append(make([]byte, 2*maxModel), trained...)},
		"Empty":   {reason: "An empty file has a digest like any other.", content: nil},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), model.File)
			if err := os.WriteFile(file, tc.content, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := loadModel(file)
			if err != nil {
				t.Fatal(err)
			}
			want := loaded{Model: tc.want, digest: fmt.Sprintf("sha256:%x", sha256.Sum256(tc.content))}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(loaded{})); diff != "" {
				t.Errorf("%s\nloadModel(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestServesTrainedModel expects its version in answers, and failures as often as the model says.
func TestServesTrainedModel(t *testing.T) {
	content, err := model.Model{Version: "fraud-3", ErrorRate: 1}.Write()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), model.File)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := loadModel(file)
	if err != nil {
		t.Fatal(err)
	}
	o := m.options(Options{Version: "v1", ErrorRate: 0.5})
	if o.Version != "fraud-3" || o.ErrorRate != 1 {
		t.Errorf("want the model's version and the higher error rate, got %q and %v", o.Version, o.ErrorRate)
	}
	if o = (loaded{}).options(Options{Version: "v1", ErrorRate: 0.5}); o.Version != "v1" || o.ErrorRate != 0.5 {
		t.Errorf("without such a model the options stay, got %q and %v", o.Version, o.ErrorRate)
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

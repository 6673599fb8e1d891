// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestLastWords(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		want   string
	}{
		"Failure": {
			reason: "Reason, cause and remedy, wherever in the chain.",
			err:    fmt.Errorf("cannot fetch: %w", New(NotFound, `cannot find "s3://models/reco"`, "upload it")),
			want:   `ModelNotFound: cannot find "s3://models/reco": upload it`,
		},
		"OneLine": {
			reason: "What a server says may have several lines; a message has one.",
			err:    New(Unreachable, "it said\nno\x1b[0m", "try"),
			want:   "ModelUnreachable: it said no [0m: try",
		},
		"Full": {
			reason: "A full disk is no space.",
			err:    &fs.PathError{Op: "write", Path: "/cache/.capstan/reco.1a2b.partial/x", Err: syscall.ENOSPC},
			want: "ModelNoSpace: the volume for models is full or its quota is used up: make spec.model.cache.resources.requests.storage larger or, " +
				"without a cache, give nodes more disk",
		},
		"ReadOnly": {
			reason: "Names of temporary files would differ from pod to pod.",
			err: fmt.Errorf("cannot put the model in its place: %w",
				&os.LinkError{Op: "rename", Old: "/cache/.capstan/reco.1a2b.partial", New: "/cache/reco", Err: syscall.EACCES}),
			want: "ModelInvalid: cannot put the model in its place: permission denied: let group 65532 write to the volume for models: " +
				"use a storage class that honours fsGroup, or change its permissions",
		},
		"Nested": {
			reason: "What happened is told, whatever was tried.",
			err:    fmt.Errorf("cannot open it: %w", &fs.PathError{Op: "openat", Path: "x", Err: &fs.PathError{Op: "statat", Path: "y", Err: syscall.ENOENT}}),
			want:   "ModelInvalid: cannot open it: no such file or directory: look into the log of the init container model",
		},
		"Unknown": {
			reason: "Whatever it is, it is said.",
			err:    errors.New("out of luck"),
			want:   "ModelInvalid: out of luck: look into the log of the init container model",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, LastWords(tc.err)); diff != "" {
				t.Errorf("%s\nLastWords(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLastWordsFit(t *testing.T) {
	words := LastWords(New(Invalid, strings.Repeat("ä", maxWords), "stop"))
	if len(words) > maxWords || !utf8.ValidString(words) {
		t.Errorf("LastWords(...): want at most %d bytes of whole letters, got %d, valid %t", maxWords, len(words), utf8.ValidString(words))
	}
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// words runs the program, which must fail, and returns its last ones.
func words(t *testing.T, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "termination-log")
	// The kubelet has made it, and it may hold what an earlier container said.
	if err := os.WriteFile(file, []byte(strings.Repeat("earlier ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	if code := run(append(args, "--termination-log="+file), io.Discard, &stderr); code != 1 {
		t.Errorf("%v: want exit code 1, got %d", args, code)
	}
	said, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(stderr.String(), string(said)+"\n") {
		t.Errorf("%v: want the last words %q to be the last of the log, too, got %q", args, said, stderr.String())
	}
	return string(said)
}

func TestCommandLine(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Nothing": {reason: "The program has to be told.", args: nil, want: "ModelInvalid: cannot understand the command line: expected one of"},
		"Missing": {
			reason: "What is missing is named.", args: []string{"fetch", "--source=s3://models/reco"},
			want: "ModelInvalid: cannot understand the command line: missing flags: --cache=DIR, --key=KEY: see companion --help",
		},
		"Digest": {
			reason: "A digest that is none would never match.",
			args:   []string{"fetch", "--source=s3://models/reco", "--cache=.", "--key=reco", "--digest=md5:1"},
			want:   `ModelInvalid: digest "md5:1" is none: write sha256:`,
		},
		"Plain": {
			reason: "A version of the registry may be there, too.",
			args:   []string{"fetch", "--source=http://example.org/m", "--cache=" + t.TempDir(), "--key=reco"},
			want:   "ModelInvalid: anyone on the way can replace what http:// downloads: set spec.model.digest",
		},
		"Scheme": {
			reason: "What cannot be downloaded is told with what can.",
			args:   []string{"fetch", "--source=ftp://models/reco", "--cache=" + t.TempDir(), "--key=reco"},
			want:   `ModelInvalid: cannot download from "ftp://models/reco": models come from s3://`,
		},
		"NoVolume": {
			reason: "A mount that was forgotten.",
			args:   []string{"fetch", "--source=s3://models/reco", "--cache=/nowhere", "--key=reco"},
			want:   "ModelInvalid: cannot open the volume for models: no such file or directory: ",
		},
		"WarmUp": {
			reason: "Only plain HTTP is known.", args: []string{"warm-up", "--url=https://127.0.0.1/"},
			want: "ModelInvalid: --url=https://127.0.0.1/ cannot be requested",
		},
		"Install": {
			reason: "What is not about a model has no reason of a model, and no remedy about its init container.",
			args:   []string{"install", "--to=/proc"},
			want:   "cannot install the companion: ",
		},
		"WarmUpBody": {
			reason: "A body that is not there.", args: []string{"warm-up", "--url=http://127.0.0.1/", "--body-file=/nowhere"},
			want: "ModelInvalid: cannot read the body of the requests: no such file or directory: ",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := words(t, tc.args...); !strings.HasPrefix(got, tc.want) {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func TestDigestCommand(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "model.bin"), []byte("weights"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout bytes.Buffer
	if code := run([]string{"digest", dir}, &stdout, io.Discard); code != 0 {
		t.Fatalf("want exit code 0, got %d", code)
	}
	// echo "$(printf weights | sha256sum | cut -c1-64) model.bin" | sha256sum
	if want := "sha256:dbf98e82c6b8ae8e307ad8f1dd14ec8c3adc7fdc6d825c4b4a9f4261406295c6\n"; stdout.String() != want {
		t.Errorf("want %q and nothing else, got %q", want, stdout.String())
	}
}

func TestVerifyCommand(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "model.bin"), []byte("weights"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout bytes.Buffer
	if code := run([]string{"digest", dir}, &stdout, io.Discard); code != 0 {
		t.Fatal("cannot compute a digest")
	}
	digest := strings.TrimSpace(stdout.String())
	for _, args := range [][]string{{}, {"--size=7"}, {"--digest=" + digest}, {"--digest=" + digest, "--size=7"}} {
		if code := run(append([]string{"verify", "--model=" + dir}, args...), io.Discard, io.Discard); code != 0 {
			t.Errorf("verify %v: want success, got exit code %d", args, code)
		}
	}
	other := "sha256:" + strings.Repeat("0", 64)
	for want, args := range map[string][]string{
		"ModelDigestMismatch: the model has digest " + digest + " instead of " + other:                {"--model=" + dir, "--digest=" + other},
		"ModelSizeMismatch: the model has 7 bytes instead of 8":                                       {"--model=" + dir, "--size=8", "--digest=" + other},
		"ModelNotFound: the volume has no files where the model should be":                            {"--model=" + t.TempDir(), "--digest=" + other},
		"ModelNotFound: the volume has nothing where the model should be":                             {"--model=/nowhere"},
		"ModelInvalid: digest \"x\" is none":                                                          {"--model=" + dir, "--digest=x"},
		"ModelInvalid: cannot read the model on the volume: not a directory: let the user of the pod": {"--model=" + filepath.Join(dir, "model.bin")},
	} {
		if got := words(t, append([]string{"verify"}, args...)...); !strings.HasPrefix(got, want) {
			t.Errorf("verify %v: want %q, got %q", args, want, got)
		}
	}
}

// TestWarmUpCommand shows that the program answers, and ends with a signal.
func TestWarmUpCommand(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	address := freeAddress(t)
	code := make(chan int, 1)
	go func() {
		code <- run([]string{"warm-up", "--url=" + srv.URL, "--requests=3", "--listen=" + address}, io.Discard, io.Discard)
	}()
	ready := func() int {
		resp, err := http.Get("http://" + address + "/ready")
		if err != nil {
			return 0
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	for limit := time.Now().Add(5 * time.Second); ready() != http.StatusOK; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("waited 5 s in vain for the server to be warm")
		}
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-code:
		if got != 0 {
			t.Errorf("want exit code 0, got %d", got)
		}
	case <-time.After(5 * time.Second):
		t.Error("the program does not end with a signal")
	}
}

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// SPDX-License-Identifier: Apache-2.0

package download

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFromEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pins.yaml")
	if err := os.WriteFile(file, []byte("[]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), "pins.yaml")
	if err := os.WriteFile(broken, []byte("<html>"), 0o600); err != nil {
		t.Fatal(err)
	}
	const address = "https://github.com/etcd-io/etcd/releases/download/v1/SHA256SUMS"
	for name, tc := range map[string]struct {
		reason            string
		mode, mirror, pin string
		wantMode          Mode
		wantAddress       string
		// fails is part of the error.
		fails string
	}{
		"Nothing":       {reason: "All variables are optional.", wantMode: ModeAuto, wantAddress: address},
		"Auto":          {reason: "The default can be set explicitly.", mode: "auto", wantMode: ModeAuto, wantAddress: address},
		"Download":      {reason: "Downloads can be demanded.", mode: "download", wantMode: ModeDownload, wantAddress: address},
		"Build":         {reason: "Downloads can be switched off.", mode: "build", wantMode: ModeBuild, wantAddress: address},
		"UnknownMode":   {reason: "The error names the values.", mode: "Download", fails: `CAPSTAN_PROGRAMS="Download": set it to auto, download or build`},
		"Mirror":        {reason: "A mirror has files by host and path, with or without a slash at the end.", mirror: "https://mirror.example.org/a/", wantMode: ModeAuto, wantAddress: "https://mirror.example.org/a/github.com/etcd-io/etcd/releases/download/v1/SHA256SUMS"},
		"MirrorPort":    {reason: "A server on this machine is a mirror, too.", mirror: "http://127.0.0.1:8099", wantMode: ModeAuto, wantAddress: "http://127.0.0.1:8099/github.com/etcd-io/etcd/releases/download/v1/SHA256SUMS"},
		"NoScheme":      {reason: "A bare host would be a path.", mirror: "mirror.example.org", fails: "https://mirror.example.org/releases"},
		"OtherScheme":   {reason: "Folders are not served.", mirror: "file:///srv/mirror", fails: "CAPSTAN_DOWNLOADS"},
		"MirrorSecret":  {reason: "A password in an address that cannot be used is not printed.", mirror: "https//me:secret@mirror", fails: "CAPSTAN_DOWNLOADS"},
		"Pins":          {reason: "Own pins replace ours.", pin: file, wantMode: ModeAuto, wantAddress: address},
		"PinsMissing":   {reason: "A mistyped path must not fall back to our pins.", pin: file + "x", fails: "CAPSTAN_DOWNLOADS_PINS"},
		"PinsUnusable":  {reason: "Nor must a file that is no list of pins.", pin: broken, fails: "CAPSTAN_DOWNLOADS_PINS"},
		"MirrorNoValue": {reason: "A scheme alone is no address.", mirror: "https://", fails: "CAPSTAN_DOWNLOADS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(ModeVariable, tc.mode)
			t.Setenv(MirrorVariable, tc.mirror)
			t.Setenv(PinsVariable, tc.pin)
			d, err := FromEnvironment()
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) || strings.Contains(err.Error(), "secret") {
					t.Errorf("%s\nwant an error with %q, got %v", tc.reason, tc.fails, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			got, err := d.locate(address)
			if err != nil || got.String() != tc.wantAddress || d.Mode() != tc.wantMode {
				t.Errorf("%s\nwant %s and %s, got %s and %s (%v)", tc.reason, tc.wantMode, tc.wantAddress, d.Mode(), got, err)
			}
			if (len(d.pins) == 0) != (tc.pin == file) {
				t.Errorf("%s\nthere are %d pins", tc.reason, len(d.pins))
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package modeluri

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason string
		uri    string
		want   URI
	}{
		"S3": {
			reason: "the query says where, and is no part of the key",
			uri:    "s3://models/reco/7?region=eu-central-1&endpoint=https://s3.example.org/a=b",
			want:   URI{Scheme: S3, Base: "s3://models/reco/7", Endpoint: "https://s3.example.org/a=b", Region: "eu-central-1"},
		},
		"Web": {
			reason: "a query of a web server is that server's",
			uri:    "https://host.example.org/m.bin?endpoint=x&sig=1",
			want:   URI{Scheme: "https", Base: "https://host.example.org/m.bin?endpoint=x&sig=1"},
		},
		"Version": {
			reason: "MLflow's form for a version",
			uri:    "models:/reco/7?s3Endpoint=https://s3.example.org&endpoint=https://mlflow.example.org",
			want: URI{
				Scheme: Registry, Base: "models:/reco/7", Name: "reco", Version: "7",
				Endpoint: "https://mlflow.example.org", S3Endpoint: "https://s3.example.org",
			},
		},
		"Alias": {
			reason: "MLflow's form for an alias; the last @ divides",
			uri:    "models:/re@co@champion",
			want:   URI{Scheme: Registry, Base: "models:/re@co@champion", Name: "re@co", Alias: "champion"},
		},
		"HuggingFace": {
			reason: "the companion divides it",
			uri:    "hf://org/repo@main/a.gguf?endpoint=https://hub.example.org",
			want:   URI{Scheme: HF, Base: "hf://org/repo@main/a.gguf", Endpoint: "https://hub.example.org"},
		},
		"Volume":      {reason: "all of a volume", uri: "pvc://models", want: URI{Scheme: PVC, Base: "pvc://models", Claim: "models"}},
		"VolumeSlash": {reason: "so is this", uri: "pvc://models/", want: URI{Scheme: PVC, Base: "pvc://models/", Claim: "models"}},
		"VolumePath": {
			reason: "slashes that say nothing are left out",
			uri:    "pvc://models//reco/7/", want: URI{Scheme: PVC, Base: "pvc://models//reco/7/", Claim: "models", Path: "reco/7"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Parse(tc.uri)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCanonical(t *testing.T) {
	cases := map[string]struct {
		reason string
		a, b   string
		same   bool
	}{
		"Order":    {"the order of a query means nothing", "s3://a/b?endpoint=https://c&region=d", "s3://a/b?region=d&endpoint=https://c", true},
		"Endpoint": {"another server is another model", "s3://a/b?endpoint=https://c", "s3://a/b?endpoint=https://d", false},
		"Alias":    {"an alias and a version may mean the same", "models:/reco@champion", "models:/reco/7", true},
		"Name":     {"another model", "models:/reco/7", "models:/other/7", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, b := Parse(tc.a).Canonical(), Parse(tc.b).Canonical()
			if (a == b) != tc.same {
				t.Errorf("%s: %q and %q: want the same %t", tc.reason, a, b, tc.same)
			}
		})
	}
}

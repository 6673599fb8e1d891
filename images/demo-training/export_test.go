// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/images/demo-training/model"
)

// TestExport trains against a server that takes one object.
func TestExport(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		target string
		drop   string // key that the account lacks
		status int
		codes  []int
		want   map[string]model.Model
	}{
		"Exported": {
			reason: "The model is below the prefix with the number of the run.",
			target: "s3://models/fraud/{run}", status: http.StatusOK, codes: []int{0, 0},
			want: map[string]model.Model{"/models/fraud/3/model.json": {Version: "fraud-3", Steps: 4, Sum: want(2, 4), ErrorRate: 0.5}},
		},
		"Refused":      {reason: "A model that the bucket does not take fails the attempt.", target: "s3://models/fraud", status: http.StatusForbidden, codes: []int{1, 0}},
		"NoBucket":     {reason: "A target without a prefix is refused.", target: "s3://models", status: http.StatusOK, codes: []int{1, 0}},
		"OtherScheme":  {reason: "Only S3 is known.", target: "https://models/fraud", status: http.StatusOK, codes: []int{1, 0}},
		"NoAccount":    {reason: "Without a key nothing is sent.", target: "s3://models/fraud", drop: keyID, status: http.StatusOK, codes: []int{1, 0}},
		"NoEndpoint":   {reason: "Without an endpoint nothing is sent to anywhere else.", target: "s3://models/fraud", drop: keyEndpoint, status: http.StatusOK, codes: []int{1, 0}},
		"DefaultsHold": {reason: "The region has a default.", target: "s3://models/fraud", drop: keyRegion, status: http.StatusOK, codes: []int{0, 0}, want: map[string]model.Model{"/models/fraud/model.json": {Version: "fraud-3", Steps: 4, Sum: want(2, 4), ErrorRate: 0.5}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]model.Model{}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				content, err := io.ReadAll(r.Body)
				if m, ok := model.Read(content); err == nil && ok && tc.status == http.StatusOK && r.Method == http.MethodPut && strings.Contains(r.Header.Get("Authorization"), "key/") {
					got[r.URL.Path] = m
				}
				w.WriteHeader(tc.status)
			}))
			defer server.Close()
			account := map[string]string{keyEndpoint: server.URL, keyRegion: "eu-central-1", keyID: "key", keySecret: "secret"}
			maps.DeleteFunc(account, func(key, _ string) bool { return key == tc.drop })
			folder := t.TempDir()
			for key, value := range account {
				if err := os.WriteFile(filepath.Join(folder, key), []byte(value), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			codes, _ := rig(t, Options{
				Steps: 4, Step: time.Millisecond, World: 2, Keep: 1, Checkpoints: t.TempDir(),
				Export: tc.target, Account: folder, Flaw: 0.5, Run: "3", RunID: "fraud-3",
			}, never)
			if diff := cmp.Diff(tc.codes, codes); diff != "" {
				t.Errorf("%s\nexit codes: -want, +got:\n%s", tc.reason, diff)
			}
			if len(got) > 0 || len(tc.want) > 0 {
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s\nmodels in the bucket: -want, +got:\n%s", tc.reason, diff)
				}
			}
		})
	}
}

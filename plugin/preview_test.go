// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kubetesting "k8s.io/client-go/testing"

	"github.com/capstan-dev/capstan/plugin/internal/cluster"
)

const pr1 = `
apiVersion: capstan.dev/v1alpha1
kind: Preview
metadata: {name: pr-1, namespace: demo, generation: 2}
spec: {algorithm: {of: reco}}
status:
`

// previewRig answers an apply with generation 2, and each look with the next of some statuses.
func previewRig(t *testing.T, statuses ...string) rig {
	t.Helper()
	r := newRig()
	r.fake.PrependReactor("patch", "previews", func(a kubetesting.Action) (bool, runtime.Object, error) {
		u := &unstructured.Unstructured{}
		err := u.UnmarshalJSON(a.(kubetesting.PatchAction).GetPatch())
		u.SetGeneration(2)
		return true, u, err
	})
	r.fake.PrependReactor("get", "previews", func(kubetesting.Action) (bool, runtime.Object, error) {
		u := object(t, pr1+statuses[0], nil)
		if len(statuses) > 1 {
			statuses = statuses[1:]
		}
		return true, u, nil
	})
	return r
}

// run2 is run with what is written to both outputs apart.
func (r rig) run2(t *testing.T, args ...string) (out, diagnostics string, err error) {
	t.Helper()
	var o, d bytes.Buffer
	root := r.root()
	root.SetArgs(args)
	root.SetOut(&o)
	root.SetErr(&d)
	err = root.ExecuteContext(t.Context())
	return o.String(), d.String(), err
}

const (
	isSynced   = `{type: Synced, status: "True", observedGeneration: 2}`
	isAccepted = `{type: Accepted, status: "True"}, {type: Composed, status: "True"}`
)

// TestPreview waits until a Preview is ready, and says why it cannot become so.
func TestPreview(t *testing.T) {
	stale := `  {phase: Ready, url: "http://old", conditions: [{type: Synced, status: "True", observedGeneration: 1}]}`
	starting := `  {phase: Starting, conditions: [` + isSynced + `, ` + isAccepted + `, {type: PreviewReady, status: "False", reason: CopyNotReady, message: Algorithm pr-1 is not ready}]}`
	routed := `  {phase: Ready, conditions: [` + isSynced + `, ` + isAccepted + `]}`
	ready := `  {phase: Ready, url: "https://pr-1.example.org", expiresAt: "2026-11-28T12:00:00Z", connectionSecrets: [{consumer: app, secret: pr-1-db-app, ready: true}], conditions: [` + isSynced + `, ` + isAccepted + `]}`
	cases := map[string]struct {
		reason   string
		statuses []string
		out, err string
		told     string
		code     int
	}{
		"Ready": {
			reason: "Only the URL is on standard output.", statuses: []string{stale, starting, routed, ready}, out: "https://pr-1.example.org\n",
			told: "Preview demo/pr-1 is applied.\n   0.0 s  Crossplane has not read it yet\n   1.0 s  Algorithm pr-1 is not ready\n   2.0 s  waits until its route is accepted\n   3.0 s  ready\n" +
				"Secret pr-1-db-app connects consumer app.\nIt lives until 2026-11-28T12:00:00Z.\n",
		},
		"NotAllowed": {
			reason: "What a person has to do ends the wait.", err: "BaseAllowed is False (PreviewsNotAllowed): set the annotation",
			statuses: []string{`  {phase: Pending, conditions: [` + isSynced + `, {type: BaseAllowed, status: "False", reason: PreviewsNotAllowed, message: set the annotation}]}`},
		},
		"Expired": {
			reason: "A record does not become ready.", err: "its time was up at 2026-11-26T11:00:00Z: call again with a longer --ttl, or delete it first",
			statuses: []string{`  {phase: Expired, expiredAt: "2026-11-26T11:00:00Z", conditions: [` + isSynced + `]}`},
		},
		"Late": {reason: "Nobody waits for ever.", statuses: []string{starting}, err: "no outcome within 15m0s: Algorithm pr-1 is not ready", code: late},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out, told, err := previewRig(t, tc.statuses...).run2(t, "preview", "pr-1", "--algorithm=reco")
				if out != tc.out || (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
					t.Errorf("%s want %q and error %q, got %q and %v", tc.reason, tc.out, tc.err, out, err)
				}
				if diff := cmp.Diff(tc.told, told); tc.told != "" && diff != "" {
					t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
				}
				if e := (exit{}); tc.code != 0 && (!errors.As(err, &e) || e.code != tc.code) {
					t.Errorf("%s want exit code %d, got %v", tc.reason, tc.code, err)
				}
			})
		})
	}
}

// TestPreviewManifest: the flags become a manifest.
func TestPreviewManifest(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   string
		want   string
		err    string
	}{
		"Whole": {
			reason: "Every flag has its field.",
			args: "--algorithm=reco --image=x:2 --replicas=2 --env=B=2 --env=A=1 --host=pr.example.org --database=orders --at=2026-11-26T08:59:00Z --storage=20Gi " +
				"--owner=jane --ttl=24h --idle-after=1h",
			want: `apiVersion: capstan.dev/v1alpha1
kind: Preview
metadata:
  name: pr-1
  namespace: demo
spec:
  algorithm:
    env:
    - name: A
      value: "1"
    - name: B
      value: "2"
    host: pr.example.org
    image: x:2
    of: reco
    replicas: 2
  database:
    at: "2026-11-26T08:59:00Z"
    data: Moment
    of: orders
    storage: 20Gi
  idleAfter: 1h
  owner: jane
  ttl: 24h
`,
		},
		"Nothing":   {reason: "There must be an original.", args: "--ttl=1h", err: "name an original: add --algorithm, --database or both"},
		"NoAlgo":    {reason: "A flag without its original is a mistake.", args: "--database=orders --image=x", err: "--image, --host, --env and --idle-after are of an Algorithm: add --algorithm"},
		"NoDB":      {reason: "Likewise.", args: "--algorithm=reco --storage=1Gi", err: "--at and --storage are of a Database: add --database"},
		"WrongSize": {reason: "Before anything is asked of the cluster.", args: "--database=orders --storage=big", err: `cannot use --storage "big": write a size such as 20Gi: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, _, err := newRig().run2(t, append([]string{"preview", "pr-1", "--print"}, strings.Fields(tc.args)...)...)
			if diff := cmp.Diff(tc.want, out); diff != "" || (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
				t.Errorf("%s want error %q, got %v; -want, +got:\n%s", tc.reason, tc.err, err, diff)
			}
		})
	}
}

// TestPreviewDelete waits until the copies are gone, and succeeds without a Preview.
func TestPreviewDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		copied := object(t, strings.Replace(reco, "metadata: {", "metadata: {labels: {capstan.dev/preview: pr-1}, ", 1), nil)
		r := newRig(object(t, pr1+"  {phase: Ready}", nil), copied)
		go func() {
			time.Sleep(2500 * time.Millisecond)
			_ = r.fake.Tracker().Delete(cluster.Algorithms, "demo", copied.GetName())
		}()
		_, told, err := r.run2(t, "preview", "pr-1", "--delete")
		want := "Preview demo/pr-1 is deleted.\n   0.0 s  waits for the end of Algorithm reco\n   3.0 s  its copies are gone\n"
		if diff := cmp.Diff(want, told); err != nil || diff != "" {
			t.Errorf("%v: -want, +got:\n%s", err, diff)
		}
		if _, told, err = r.run2(t, "preview", "pr-1", "--delete"); err != nil || told != "There is no Preview demo/pr-1.\n" {
			t.Errorf("without one there is nothing to do, got %q, %v", told, err)
		}
	})
}

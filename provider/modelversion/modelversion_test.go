// SPDX-License-Identifier: Apache-2.0

package modelversion

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/mlflow"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// at is a moment after noon.
func at(d time.Duration) time.Time { return time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC).Add(d) }

// TestSettled shows when it may be taken for sure that a version that cannot be found was not made.
func TestSettled(t *testing.T) {
	cases := map[string]struct {
		reason                     string
		pending, succeeded, failed time.Duration // after noon; 0 is never
		refused                    bool
		now                        time.Duration
		want                       bool
	}{
		"Never":      {reason: "Nobody has tried.", now: time.Second, want: true},
		"Died":       {reason: "Somebody tried and was not heard of again.", pending: time.Second, now: 2 * time.Second},
		"DiedBefore": {reason: "A second try is in doubt as the first one was.", failed: time.Second, pending: 2 * time.Second, now: 3 * time.Second},
		"Failed":     {reason: "An error tells nothing.", pending: time.Second, failed: 2 * time.Second, now: 3 * time.Second},
		"Almost":     {reason: "The registry may still be at it.", pending: time.Second, now: 60 * time.Second},
		"LongAgo":    {reason: "No call takes that long.", pending: time.Second, now: 61 * time.Second, want: true},
		"Refused":    {reason: "The registry said no.", pending: time.Second, failed: 2 * time.Second, refused: true, now: 3 * time.Second, want: true},
		"Succeeded":  {reason: "It was made, and somebody took its number away.", pending: time.Second, succeeded: time.Second, now: 2 * time.Second, want: true},
		"Behind":     {reason: "Our clock is behind that of the one before us.", pending: time.Hour, now: time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cr := &v1alpha1.ModelVersion{}
			cr.SetUID("u")
			for d, set := range map[*time.Duration]func(*v1alpha1.ModelVersion, time.Time){
				&tc.pending:   func(cr *v1alpha1.ModelVersion, t time.Time) { meta.SetExternalCreatePending(cr, t) },
				&tc.succeeded: func(cr *v1alpha1.ModelVersion, t time.Time) { meta.SetExternalCreateSucceeded(cr, t) },
				&tc.failed:    func(cr *v1alpha1.ModelVersion, t time.Time) { meta.SetExternalCreateFailed(cr, t) },
			} {
				if *d > 0 {
					set(cr, at(*d))
				}
			}
			e := &external{now: func() time.Time { return at(tc.now) }, refusals: &refusals{}}
			if tc.refused {
				e.refusals.remember(cr)
			}
			if err := e.settled(cr); (err == nil) != tc.want {
				t.Errorf("\n%s\nsettled(...): want %t, got %v", tc.reason, tc.want, err)
			}
			if tc.refused {
				// The next try is in doubt again.
				meta.SetExternalCreatePending(cr, at(tc.now))
				if e.settled(cr) == nil {
					t.Errorf("\n%s\nsettled(...): an old refusal must not count", tc.reason)
				}
			}
		})
	}
}

func TestRefused(t *testing.T) {
	wrap := func(err error) error {
		return fmt.Errorf("cannot create: %w", &url.Error{Op: "Post", URL: "https://x", Err: err})
	}
	cases := map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"Ours":        {reason: "It was not sent.", err: &outside.Failure{}, want: true},
		"Invalid":     {reason: "The registry said no.", err: &mlflow.Error{Status: 400, Code: "INVALID_PARAMETER_VALUE"}, want: true},
		"Throttled":   {reason: "The registry said not now.", err: &mlflow.Error{Status: 429}, want: true},
		"Gateway":     {reason: "The proxy did not wait.", err: &mlflow.Error{Status: 408}},
		"Internal":    {reason: "It failed, before or after.", err: &mlflow.Error{Status: 500}},
		"Unavailable": {reason: "It may have failed after.", err: &mlflow.Error{Status: 503}},
		"Unreadable":  {reason: "A good status with a bad answer.", err: &mlflow.Error{Status: 200}},
		"Nobody":      {reason: "Nobody listens.", err: wrap(&net.OpError{Err: syscall.ECONNREFUSED}), want: true},
		"NoName":      {reason: "There is no such host.", err: wrap(&net.DNSError{IsNotFound: true}), want: true},
		"Reset":       {reason: "The connection broke.", err: wrap(syscall.ECONNRESET)},
		"EOF":         {reason: "The connection broke.", err: wrap(io.EOF)},
		"Half":        {reason: "Half an answer.", err: io.ErrUnexpectedEOF},
		"Late":        {reason: "No answer in time.", err: wrap(context.DeadlineExceeded)},
		"Unknown":     {reason: "Nobody knows.", err: errors.New("boom")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := refused(tc.err); got != tc.want {
				t.Errorf("\n%s\nrefused(%v): want %t, got %t", tc.reason, tc.err, tc.want, got)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	got := []string{"10", "9", "100", "1", "11"}
	slices.SortFunc(got, compare)
	if diff := cmp.Diff([]string{"1", "9", "10", "11", "100"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestStates shows what the states of a version mean. MLflow's own registry knows only READY, so a fake has to do here.
func TestStates(t *testing.T) {
	cases := map[string]struct {
		reason string
		status string
		ready  bool
		says   string
	}{
		"Ready":   {reason: "It can be used.", status: "READY", ready: true},
		"None":    {reason: "The server knows no states.", ready: true},
		"Pending": {reason: "It is on its way.", status: "PENDING_REGISTRATION", says: "is registering"},
		"Failed":  {reason: "It never will be.", status: "FAILED_REGISTRATION", says: "could not register"},
		"New":     {reason: "Who knows.", status: "ARCHIVING", says: "does not know"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer := `{"model_version": {"name": "reco", "version": 7, "source": "s3://x", "status": "` + tc.status + `"}}`
				if strings.HasSuffix(r.URL.Path, "get-download-uri") {
					answer = `{"artifact_uri": "s3://x"}`
				}
				_, _ = io.WriteString(w, answer)
			}))
			defer s.Close()
			c, err := mlflow.New(&outside.Connection{
				MLflow: &apis.MLflowConfig{URL: s.URL}, HTTP: s.Client(), Authorize: func(*http.Request) {},
			})
			if err != nil {
				t.Fatal(err)
			}
			cr := &v1alpha1.ModelVersion{}
			cr.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionObserve})
			cr.Spec.ForProvider = v1alpha1.ModelVersionParameters{Model: "reco", Version: new("7")}
			o, err := (&external{client: c, refusals: &refusals{}}).Observe(t.Context(), cr)
			if err != nil || !o.ResourceExists {
				t.Fatalf("\n%s\nObserve(...): %v, %v", tc.reason, o, err)
			}
			got := cr.GetCondition(xpv2.TypeReady)
			if (got.Status == "True") != tc.ready || !strings.Contains(got.Message, tc.says) || cr.Status.AtProvider.Status != tc.status {
				t.Errorf("\n%s\nObserve(...): want ready %t with %q, got %s: %s", tc.reason, tc.ready, tc.says, got.Status, got.Message)
			}
		})
	}
}

// TestDigest shows which tags are digests, and that one that is none is told.
func TestDigest(t *testing.T) {
	good := "sha256:" + strings.Repeat("0a", 32)
	cases := map[string]struct {
		reason string
		tags   mlflow.Tags
		want   string
		told   bool
	}{
		"None":      {reason: "Nobody has set it.", tags: mlflow.Tags{"x": good}},
		"Good":      {reason: "It is what it should be.", tags: mlflow.Tags{"digest": good}, want: good},
		"Empty":     {reason: "It says nothing.", tags: mlflow.Tags{"digest": ""}, told: true},
		"Bare":      {reason: "It does not say which digest.", tags: mlflow.Tags{"digest": good[7:]}, told: true},
		"Upper":     {reason: "It would differ letter by letter.", tags: mlflow.Tags{"digest": strings.ToUpper(good)}, told: true},
		"UpperHex":  {reason: "It would differ letter by letter.", tags: mlflow.Tags{"digest": "sha256:" + strings.ToUpper(good[7:])}, told: true},
		"Short":     {reason: "A digit is missing.", tags: mlflow.Tags{"digest": good[:70]}, told: true},
		"Long":      {reason: "There is one too many.", tags: mlflow.Tags{"digest": good + "0"}, told: true},
		"Newline":   {reason: "There is one too many.", tags: mlflow.Tags{"digest": good + "\n"}, told: true},
		"NotHex":    {reason: "It is no number.", tags: mlflow.Tags{"digest": "sha256:" + strings.Repeat("0g", 32)}, told: true},
		"Another":   {reason: "Nobody can verify it.", tags: mlflow.Tags{"digest": "md5:" + good[7:]}, told: true},
		"UpperName": {reason: "It is another tag.", tags: mlflow.Tags{"Digest": good}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := &mlflow.Version{Tags: tc.tags}
			if diff := cmp.Diff(tc.want, digest(v)); diff != "" {
				t.Errorf("\n%s\ndigest(...): -want, +got:\n%s", tc.reason, diff)
			}
			cr := &v1alpha1.ModelVersion{}
			cr.SetGeneration(3)
			judge(cr, v)
			got := cr.GetCondition(xpv2.TypeReady)
			if got.Status != "True" || got.ObservedGeneration != 3 || strings.Contains(got.Message, "The tag digest of the version is not") != tc.told {
				t.Errorf("\n%s\njudge(...): want ready, told %t, got %v", tc.reason, tc.told, got)
			}

			// What is looked at again and has not changed keeps its time.
			old := metav1.NewTime(at(0))
			cr.Status.Conditions[0].LastTransitionTime = old
			judge(cr, v)
			if got := cr.GetCondition(xpv2.TypeReady).LastTransitionTime; !got.Equal(&old) {
				t.Errorf("\n%s\njudge(...): a second look must change nothing, got %s", tc.reason, got)
			}
		})
	}
}

// TestRememberStale shows that what was seen for a spec is not told of another one: the conditions would carry the generation of
// a spec that nobody has looked at.
func TestRememberStale(t *testing.T) {
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	cr := &v1alpha1.ModelVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "reco", Generation: 1}}
	kube := fake.NewClientBuilder().WithScheme(s).WithObjects(cr).Build()
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(cr), cr); err != nil {
		t.Fatal(err)
	}
	edited := cr.DeepCopy()
	edited.SetGeneration(2)
	edited.Spec.ForProvider.Description = new("new")
	if err := kube.Update(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	e, v := &external{kube: kube, now: func() time.Time { return at(0) }}, &mlflow.Version{Version: "7"}
	if err := e.remember(t.Context(), cr.DeepCopy(), v); !kerrors.IsConflict(err) {
		t.Errorf("remember(...): want a conflict, got %v", err)
	}
	if err := e.remember(t.Context(), edited, v); err != nil || meta.GetExternalName(edited) != "7" {
		t.Errorf("remember(...): want the number to be stored, got %q, %v", meta.GetExternalName(edited), err)
	}
}

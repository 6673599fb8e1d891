// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

func TestJudge(t *testing.T) {
	now := time.Date(2026, time.November, 1, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason   string
		evidence evidence
		want     standing
	}{
		"OurTag":      {reason: "The tag decides.", evidence: evidence{taggable: true, owner: "us"}, want: ours},
		"AnothersTag": {reason: "The tag decides.", evidence: evidence{taggable: true, owner: "them"}, want: others},
		"AnothersTagAnd": {
			reason:   "Nothing else counts against a tag.",
			evidence: evidence{taggable: true, owner: "them", recorded: true, began: now, made: now, empty: true, consent: true},
			want:     others,
		},
		"NoTag": {reason: "What carries no tag is nobody's.", evidence: evidence{taggable: true}, want: nobodys},
		"NoTagRecorded": {
			reason:   "A tag that somebody has taken away is not put back without being asked for.",
			evidence: evidence{taggable: true, recorded: true}, want: nobodys,
		},
		"Consent": {reason: "Unless it is taken over.", evidence: evidence{taggable: true, consent: true}, want: unmarked},
		"Interrupted": {
			reason:   "A Create was interrupted, and the bucket is empty and as old.",
			evidence: evidence{taggable: true, began: now, made: now.Add(time.Second), empty: true}, want: unmarked,
		},
		"InterruptedNotEmpty": {
			reason:   "Somebody uses it.",
			evidence: evidence{taggable: true, began: now, made: now.Add(time.Second)}, want: nobodys,
		},
		"InterruptedOlder": {
			reason:   "It was there before.",
			evidence: evidence{taggable: true, began: now, made: now.Add(-window - time.Second), empty: true}, want: nobodys,
		},
		"InterruptedOtherClock": {
			reason:   "It was there before by a clock that is a little slow.",
			evidence: evidence{taggable: true, began: now, made: now.Add(-5 * time.Minute), empty: true}, want: unmarked,
		},
		"InterruptedYounger": {
			reason:   "It was made when nobody of us was at it any more.",
			evidence: evidence{taggable: true, began: now, made: now.Add(window + time.Second), empty: true}, want: nobodys,
		},
		"InterruptedUnknownAge": {
			reason:   "The server does not tell.",
			evidence: evidence{taggable: true, began: now, empty: true}, want: unmarked,
		},
		"NoTagsRecorded": {reason: "Where there are no tags the record decides.", evidence: evidence{recorded: true}, want: ours},
		"NoTagsNothing":  {reason: "Without one it is nobody's.", evidence: evidence{}, want: nobodys},
		"NoTagsConsent":  {reason: "Unless it is taken over.", evidence: evidence{consent: true}, want: ours},
		"NoTagsInterrupted": {
			reason: "A Create was interrupted.", evidence: evidence{began: now, made: now, empty: true}, want: ours,
		},
		"NoTagsInterruptedUnknownAge": {
			reason: "On one's own server.", evidence: evidence{began: now, empty: true}, want: ours,
		},
		"NoTagsInterruptedSharedUnknownAge": {
			reason: "Among strangers, who could have made it, the time must be known.", evidence: evidence{began: now, empty: true, shared: true}, want: nobodys,
		},
		"NoTagsInterruptedShared": {
			reason: "If it is, it is ours.", evidence: evidence{began: now, made: now, empty: true, shared: true}, want: ours,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := judge("us", tc.evidence); got != tc.want {
				t.Errorf("%s\njudge(%+v): want %s, got %s", tc.reason, tc.evidence, tc.want, got)
			}
		})
	}
}

func TestBegan(t *testing.T) {
	pending := time.Date(2026, time.November, 1, 12, 0, 0, 0, time.UTC)
	later, earlier := pending.Add(time.Second), pending.Add(-time.Second)
	cases := map[string]struct {
		reason           string
		edit             func(cr *v1alpha1.Bucket)
		taggable, shared bool
		want             time.Time
	}{
		"Never": {reason: "Nothing was ever made.", edit: func(*v1alpha1.Bucket) {}, taggable: true},
		"Dead": {
			reason: "The process died.", taggable: true, want: pending,
			edit: func(cr *v1alpha1.Bucket) { meta.SetExternalCreatePending(cr, pending) },
		},
		"Failed": {
			reason: "The server said no.", taggable: true,
			edit: func(cr *v1alpha1.Bucket) {
				meta.SetExternalCreatePending(cr, pending)
				meta.SetExternalCreateFailed(cr, later)
			},
		},
		"FailedUnheard": {
			reason: "The server may have said yes.", taggable: true, want: pending,
			edit: func(cr *v1alpha1.Bucket) {
				meta.SetExternalCreatePending(cr, pending)
				meta.SetExternalCreateFailed(cr, later)
				creating(cr, "name")
			},
		},
		"FailedUnheardAtAnother": {
			reason: "But of a bucket of another name.", taggable: true,
			edit: func(cr *v1alpha1.Bucket) {
				meta.SetExternalCreatePending(cr, pending)
				meta.SetExternalCreateFailed(cr, later)
				creating(cr, "other")
			},
		},
		"Succeeded": {
			reason: "All was told in the end.", taggable: true,
			edit: func(cr *v1alpha1.Bucket) {
				meta.SetExternalCreatePending(cr, pending)
				meta.SetExternalCreateSucceeded(cr, later)
				creating(cr, "name")
			},
		},
		"SucceededBefore": {
			reason: "That was another time.", taggable: true, want: pending,
			edit: func(cr *v1alpha1.Bucket) {
				meta.SetExternalCreateSucceeded(cr, earlier)
				meta.SetExternalCreatePending(cr, pending)
			},
		},
		"SucceededAmongStrangers": {
			reason: "Where there are no tags, the annotation is only a hint among strangers.", shared: true, want: later,
			edit: func(cr *v1alpha1.Bucket) {
				meta.SetExternalCreatePending(cr, pending)
				meta.SetExternalCreateSucceeded(cr, later)
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cr := &v1alpha1.Bucket{}
			tc.edit(cr)
			if got := began(cr, "name", tc.taggable, tc.shared); !got.Equal(tc.want) {
				t.Errorf("%s\nbegan(...): want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}

func TestPermitted(t *testing.T) {
	shared := outside.Tenant{Namespace: "shop", Config: `ClusterProviderConfig "s3"`, Shared: true, BucketPrefix: "shop-"}
	cases := map[string]struct {
		reason string
		name   string
		tenant outside.Tenant
		status v1alpha1.BucketObservation
		want   string
	}{
		"Plain":      {reason: "A name.", name: "backups"},
		"Dots":       {reason: "With dots.", name: "a.b-c.d"},
		"Longest":    {reason: "As long as can be.", name: strings.Repeat("a", 63)},
		"Short":      {reason: "Too short.", name: "ab", want: "it has 2 characters and not 3 to 63"},
		"Empty":      {reason: "None.", name: "", want: "it has 0 characters and not 3 to 63"},
		"Long":       {reason: "Too long.", name: strings.Repeat("a", 64), want: "it has 64 characters and not 3 to 63"},
		"Capitals":   {reason: "Not in lower case.", name: "Backups", want: "it must consist of lower-case letters"},
		"Underscore": {reason: "Not a letter.", name: "a_b", want: "it must consist of lower-case letters"},
		"Slash":      {reason: "A path.", name: "a/../b", want: "it must consist of lower-case letters"},
		"Query":      {reason: "A query.", name: "abc?policy", want: "it must consist of lower-case letters"},
		"ARN":        {reason: "An access point.", name: "arn:aws:s3:::x", want: "it must consist of lower-case letters"},
		"LineBreak":  {reason: "A header.", name: "abc\r\nx", want: "it must consist of lower-case letters"},
		"TwoDots":    {reason: "An empty label.", name: "a..b", want: "it must consist of lower-case letters"},
		"DotDash":    {reason: "A label that begins with a dash.", name: "a.-b", want: "it must consist of lower-case letters"},
		"EndDash":    {reason: "Ends with a dash.", name: "abc-", want: "it must consist of lower-case letters"},
		"IP":         {reason: "An address.", name: "192.168.5.4", want: "it looks like an IP address"},
		"Punycode":   {reason: "Reserved.", name: "xn--abc", want: `it begins with "xn--", which is reserved`},
		"Express":    {reason: "Another kind of bucket.", name: "abc--usw2-az1--x-s3", want: `it ends with "--x-s3", which is reserved`},
		"Ours":       {reason: "On our ground.", name: "shop-a", tenant: shared},
		"Theirs":     {reason: "On another's.", name: "bank-a", tenant: shared, want: `its name must begin with "shop-"`},
		"Begins":     {reason: "Nearly on ours.", name: "shopping", tenant: shared, want: `its name must begin with "shop-"`},
		"OwnConfig":  {reason: "Nobody else is there.", name: "bank-a", tenant: outside.Tenant{Namespace: "shop"}},
		"Renamed": {
			reason: "A bucket keeps its name.", name: "new", status: v1alpha1.BucketObservation{Owned: true, BucketName: "old"},
			want: `the external name was changed from "old" to "new"`,
		},
		"LookedAtAnother": {
			reason: "What was only looked at can be another.", name: "new", status: v1alpha1.BucketObservation{BucketName: "old"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cr := &v1alpha1.Bucket{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
			cr.Status.AtProvider = tc.status
			got := ""
			if f := permitted(cr, tc.name, tc.tenant); f != nil {
				got = f.Message
				if f.Remedy == "" || f.Reason == "" {
					t.Errorf("%s\n%q has no reason or no remedy", tc.reason, got)
				}
			}
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("%s\npermitted(%q): want %q, got %q", tc.reason, tc.name, tc.want, got)
			}
		})
	}
}

func TestTaken(t *testing.T) {
	mine := outside.Tenant{Cluster: "c", Namespace: "shop", Config: "x", Adoption: true}
	cr := &v1alpha1.Bucket{ObjectMeta: metav1.ObjectMeta{Name: "backups"}}

	// Who else uses a server is told only within a namespace.
	for owner, secret := range map[string]string{"c/bank/vault": "vault", "d/shop/till": "till"} {
		if f := taken(cr, "b", others, owner, mine); strings.Contains(f.Error(), secret) {
			t.Errorf("taken(...) of %q tells whose it is: %q", owner, f.Error())
		}
	}
	want := `bucket "b" belongs to Bucket "other" of this namespace`
	if diff := cmp.Diff(want, taken(cr, "b", others, "c/shop/other", mine).Message); diff != "" {
		t.Errorf("-want, +got message:\n%s", diff)
	}
}

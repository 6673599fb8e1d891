// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	capstan "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// TestEveryFieldIsAFeature shows that the list of features is the spec's.
func TestEveryFieldIsAFeature(t *testing.T) {
	// What a bucket is and what may be done with it is no feature.
	want := sets.New("region", "adopt", "forceDestroy")
	for _, f := range features(nil) {
		want.Insert(f.name())
	}
	got := sets.New[string]()
	for f := range reflect.TypeFor[v1alpha1.BucketParameters]().Fields() {
		got.Insert(strings.Split(f.Tag.Get("json"), ",")[0])
	}
	if diff := cmp.Diff(list(want), list(got)); diff != "" {
		t.Errorf("-features, +fields of the spec:\n%s", diff)
	}
	for _, f := range features(nil) {
		if f.asked(&v1alpha1.BucketParameters{}) {
			t.Errorf("%s is asked for by an empty spec", f.name())
		}
	}
}

func TestSameVersioning(t *testing.T) {
	cases := map[string]struct {
		reason    string
		want, got string
		same      bool
	}{
		"On":        {reason: "On is on.", want: "Enabled", got: "Enabled", same: true},
		"Off":       {reason: "Never on keeps no versions either.", want: "Suspended", same: true},
		"Suspended": {reason: "Suspended is not on.", want: "Enabled", got: "Suspended"},
		"Never":     {reason: "Never on is not on.", want: "Enabled"},
		"ToSuspend": {reason: "On is not suspended.", want: "Suspended", got: "Enabled"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := sameVersioning(tc.want, tc.got); got != tc.same {
				t.Errorf("%s\nsameVersioning(%q, %q): want %t, got %t", tc.reason, tc.want, tc.got, tc.same, got)
			}
		})
	}
}

func TestLock(t *testing.T) {
	cases := map[string]struct {
		reason string
		want   v1alpha1.ObjectLock
		got    *types.ObjectLockConfiguration
		same   bool
	}{
		"None": {reason: "A bucket without a lock.", want: v1alpha1.ObjectLock{}},
		"Plain": {
			reason: "A lock without retention.", want: v1alpha1.ObjectLock{}, same: true,
			got: &types.ObjectLockConfiguration{ObjectLockEnabled: types.ObjectLockEnabledEnabled},
		},
		"Retention": {
			reason: "The mode is spelled otherwise, and a server may say zero years.",
			want:   v1alpha1.ObjectLock{DefaultRetention: &v1alpha1.Retention{Mode: "Governance", Days: aws.Int32(30)}}, same: true,
			got: &types.ObjectLockConfiguration{ObjectLockEnabled: types.ObjectLockEnabledEnabled, Rule: &types.ObjectLockRule{
				DefaultRetention: &types.DefaultRetention{Mode: "GOVERNANCE", Days: aws.Int32(30), Years: aws.Int32(0)},
			}},
		},
		"OtherDays": {
			reason: "Another time.",
			want:   v1alpha1.ObjectLock{DefaultRetention: &v1alpha1.Retention{Mode: "Compliance", Years: aws.Int32(1)}},
			got: &types.ObjectLockConfiguration{ObjectLockEnabled: types.ObjectLockEnabledEnabled, Rule: &types.ObjectLockRule{
				DefaultRetention: &types.DefaultRetention{Mode: "COMPLIANCE", Days: aws.Int32(365)},
			}},
		},
		"NoLonger": {
			reason: "A retention that is no longer asked for.", want: v1alpha1.ObjectLock{},
			got: &types.ObjectLockConfiguration{ObjectLockEnabled: types.ObjectLockEnabledEnabled, Rule: &types.ObjectLockRule{
				DefaultRetention: &types.DefaultRetention{Mode: "COMPLIANCE", Days: aws.Int32(365)},
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if want, got := wantedLock(&tc.want), observedLock(tc.got); (want == got) != tc.same {
				t.Errorf("%s\nwant %+v, got %+v: same should be %t", tc.reason, want, got, tc.same)
			}
		})
	}
}

func TestSameEncryption(t *testing.T) {
	observed := func(algorithm, key string, bucketKey *bool) encryption {
		d := &types.ServerSideEncryptionByDefault{SSEAlgorithm: types.ServerSideEncryption(algorithm)}
		if key != "" {
			d.KMSMasterKeyID = aws.String(key)
		}
		return observedEncryption(&types.ServerSideEncryptionConfiguration{Rules: []types.ServerSideEncryptionRule{
			{ApplyServerSideEncryptionByDefault: d, BucketKeyEnabled: bucketKey},
		}})
	}
	cases := map[string]struct {
		reason string
		want   v1alpha1.Encryption
		got    encryption
		same   bool
	}{
		"Default": {
			reason: "AWS says that it uses no bucket key.", want: v1alpha1.Encryption{Algorithm: "AES256"},
			got: observed("AES256", "", aws.Bool(false)), same: true,
		},
		"None":  {reason: "Not encrypted.", want: v1alpha1.Encryption{Algorithm: "AES256"}, got: observedEncryption(nil)},
		"Other": {reason: "Otherwise encrypted.", want: v1alpha1.Encryption{Algorithm: "AES256"}, got: observed("aws:kms", "", nil)},
		"Key": {
			reason: "The same key.", want: v1alpha1.Encryption{Algorithm: "aws:kms", KMSKeyID: aws.String("1234")},
			got: observed("aws:kms", "1234", nil), same: true,
		},
		"KeyARN": {
			reason: "The same key, by its full name.", want: v1alpha1.Encryption{Algorithm: "aws:kms", KMSKeyID: aws.String("1234")},
			got: observed("aws:kms", "arn:aws:kms:eu-central-1:111122223333:key/1234", nil), same: true,
		},
		"AliasARN": {
			reason: "The same alias, by its full name.", want: v1alpha1.Encryption{Algorithm: "aws:kms", KMSKeyID: aws.String("alias/a")},
			got: observed("aws:kms", "arn:aws:kms:eu-central-1:111122223333:alias/a", nil), same: true,
		},
		"OtherKey": {
			reason: "A key whose name ends in the same way.", want: v1alpha1.Encryption{Algorithm: "aws:kms", KMSKeyID: aws.String("34")},
			got: observed("aws:kms", "arn:aws:kms:eu-central-1:111122223333:key/1234", nil),
		},
		"ServersKey": {
			reason: "The server may choose.", want: v1alpha1.Encryption{Algorithm: "aws:kms"},
			got: observed("aws:kms", "arn:aws:kms:eu-central-1:111122223333:alias/aws/s3", nil), same: true,
		},
		"BucketKey": {
			reason: "A bucket key is asked for.", want: v1alpha1.Encryption{Algorithm: "aws:kms", BucketKey: aws.Bool(true)},
			got: observed("aws:kms", "", nil),
		},
		"NoBucketKey": {
			reason: "A bucket key is no longer asked for.", want: v1alpha1.Encryption{Algorithm: "aws:kms"},
			got: observed("aws:kms", "", aws.Bool(true)),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := sameEncryption(wantedEncryption(&tc.want), tc.got); got != tc.same {
				t.Errorf("%s\nsameEncryption(%+v, %+v): want %t, got %t", tc.reason, tc.want, tc.got, tc.same, got)
			}
		})
	}
}

func TestLifecycle(t *testing.T) {
	days := aws.Int32(30)
	want := []v1alpha1.LifecycleRule{{ID: "old", Prefix: aws.String("wal/"), ExpireAfterDays: days}}
	enabled := types.ExpirationStatusEnabled
	expiration := &types.LifecycleExpiration{Days: days}
	cases := map[string]struct {
		reason string
		want   []v1alpha1.LifecycleRule
		got    []types.LifecycleRule
		same   bool
	}{
		"Filter": {
			reason: "As it is sent.", want: want, same: true,
			got: []types.LifecycleRule{{
				ID: aws.String("old"), Status: enabled, Expiration: expiration, Filter: &types.LifecycleRuleFilter{Prefix: aws.String("wal/")},
			}},
		},
		"OldPrefix": {
			reason: "As old servers say it.", want: want, same: true,
			got: []types.LifecycleRule{{ID: aws.String("old"), Status: enabled, Expiration: expiration, Prefix: aws.String("wal/")}},
		},
		"And": {
			reason: "As some servers say it.", want: want, same: true,
			got: []types.LifecycleRule{{
				ID: aws.String("old"), Status: enabled, Filter: &types.LifecycleRuleFilter{And: &types.LifecycleRuleAndOperator{Prefix: aws.String("wal/")}},
				Expiration: &types.LifecycleExpiration{Days: days, ExpiredObjectDeleteMarker: aws.Bool(false)},
			}},
		},
		"Order": {
			reason: "The order of rules means nothing.", same: true,
			want: []v1alpha1.LifecycleRule{{ID: "b", AbortUploadsAfterDays: days}, {ID: "a", ExpireDeleteMarkers: true}},
			got: []types.LifecycleRule{
				{
					ID: aws.String("a"), Status: enabled, Filter: &types.LifecycleRuleFilter{},
					Expiration: &types.LifecycleExpiration{ExpiredObjectDeleteMarker: aws.Bool(true)},
				},
				{
					ID: aws.String("b"), Status: enabled, Prefix: aws.String(""),
					AbortIncompleteMultipartUpload: &types.AbortIncompleteMultipartUpload{DaysAfterInitiation: days},
				},
			},
		},
		"Kept": {
			reason: "How many versions stay counts.",
			want:   []v1alpha1.LifecycleRule{{ID: "old", ExpireNoncurrentAfterDays: days, KeepNoncurrentVersions: aws.Int32(3)}},
			got: []types.LifecycleRule{{
				ID: aws.String("old"), Status: enabled, NoncurrentVersionExpiration: &types.NoncurrentVersionExpiration{NoncurrentDays: days},
			}},
		},
		"Disabled": {
			reason: "A rule that is switched off is no rule.", want: want,
			got: []types.LifecycleRule{{
				ID: aws.String("old"), Status: types.ExpirationStatusDisabled, Expiration: expiration, Prefix: aws.String("wal/"),
			}},
		},
		"Foreign": {
			reason: "A rule that does more.", want: want,
			got: []types.LifecycleRule{{
				ID: aws.String("old"), Status: enabled, Expiration: expiration, Prefix: aws.String("wal/"),
				Transitions: []types.Transition{{Days: aws.Int32(1)}},
			}},
		},
		"More": {
			reason: "A rule that nobody asked for.", want: want,
			got: []types.LifecycleRule{
				{ID: aws.String("old"), Status: enabled, Expiration: expiration, Prefix: aws.String("wal/")},
				{ID: aws.String("older"), Status: enabled, Expiration: expiration},
			},
		},
		"None": {reason: "No rules.", want: want},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want, got := wantedLifecycle(tc.want), observedLifecycle(tc.got)
			if same := reflect.DeepEqual(want, got); same != tc.same {
				t.Errorf("%s\nsame: want %t, got %t: %s", tc.reason, tc.same, same,
					cmp.Diff(want, got, cmp.AllowUnexported(lifecycleRule{})))
			}

			// What is sent must read as what was wanted.
			sent := []types.LifecycleRule{}
			for _, r := range want {
				sent = append(sent, r.document())
			}
			if diff := cmp.Diff(want, observedLifecycle(sent), cmp.AllowUnexported(lifecycleRule{})); diff != "" {
				t.Errorf("%s\n-wanted, +sent:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSameCORS(t *testing.T) {
	want := v1alpha1.CORSRule{AllowedOrigins: []string{"b", "a"}, AllowedMethods: []string{"PUT", "GET"}, AllowedHeaders: []string{"X-A"}}
	other := v1alpha1.CORSRule{AllowedOrigins: []string{"*"}, AllowedMethods: []string{"HEAD"}}
	cases := map[string]struct {
		reason string
		want   []v1alpha1.CORSRule
		got    []types.CORSRule
		same   bool
	}{
		"Order": {
			reason: "Neither order within a rule nor the case of headers means anything.", want: []v1alpha1.CORSRule{want}, same: true,
			got: []types.CORSRule{{AllowedOrigins: []string{"a", "b"}, AllowedMethods: []string{"GET", "PUT"}, AllowedHeaders: []string{"x-a"}}},
		},
		"Zero": {
			reason: "Some servers say 0 where nothing was said.", want: []v1alpha1.CORSRule{other}, same: true,
			got: []types.CORSRule{{ID: aws.String("1"), AllowedOrigins: []string{"*"}, AllowedMethods: []string{"HEAD"}, MaxAgeSeconds: aws.Int32(0)}},
		},
		"Methods": {
			reason: "Another method.", want: []v1alpha1.CORSRule{other},
			got: []types.CORSRule{{AllowedOrigins: []string{"*"}, AllowedMethods: []string{"GET"}}},
		},
		"RuleOrder": {
			reason: "The first rule that fits applies.", want: []v1alpha1.CORSRule{want, other},
			got: []types.CORSRule{
				{AllowedOrigins: []string{"*"}, AllowedMethods: []string{"HEAD"}},
				{AllowedOrigins: []string{"a", "b"}, AllowedMethods: []string{"GET", "PUT"}, AllowedHeaders: []string{"x-a"}},
			},
		},
		"None": {reason: "No rules.", want: []v1alpha1.CORSRule{want}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := sameCORS(wantedCORS(tc.want), observedCORS(tc.got)); got != tc.same {
				t.Errorf("%s\nsameCORS(...): want %t, got %t", tc.reason, tc.same, got)
			}
		})
	}
}

func TestRetagged(t *testing.T) {
	there := map[string]string{v1alpha1.TagOwner: "us", "aws:stack": "x", "team": "web", "cost": "1"}
	cases := map[string]struct {
		reason string
		want   map[string]string
		given  []string
		after  map[string]string
	}{
		"Nothing": {reason: "Nothing is asked for and nothing was given.", after: there},
		"More": {
			reason: "One more.", want: map[string]string{"team": "shop", "new": "1"},
			after: map[string]string{v1alpha1.TagOwner: "us", "aws:stack": "x", "team": "shop", "cost": "1", "new": "1"},
		},
		"Less": {
			reason: "One that was given is no longer asked for; others stay.", want: map[string]string{"team": "web"}, given: []string{"team", "cost"},
			after: map[string]string{v1alpha1.TagOwner: "us", "aws:stack": "x", "team": "web"},
		},
		"None": {
			reason: "Not even a status that somebody has written takes the owner away.", given: []string{"team", "cost", v1alpha1.TagOwner},
			after: map[string]string{v1alpha1.TagOwner: "us", "aws:stack": "x"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.after, retagged(there, tc.want, tc.given)); diff != "" {
				t.Errorf("%s\nretagged(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAccess(t *testing.T) {
	all := publicAccess{blockACLs: true, ignoreACLs: true, blockPolicy: true, restrict: true}
	if got := wantedAccess(&v1alpha1.PublicAccessBlock{}); got != all {
		t.Errorf("what is left out is not forbidden: %+v", got)
	}
	some := publicAccess{blockACLs: true, ignoreACLs: true, restrict: true}
	if got := wantedAccess(&v1alpha1.PublicAccessBlock{BlockPublicPolicy: aws.Bool(false)}); got != some {
		t.Errorf("want %+v, got %+v", some, got)
	}
	if got := observedAccess(&types.PublicAccessBlockConfiguration{BlockPublicAcls: aws.Bool(true)}); got != (publicAccess{blockACLs: true}) {
		t.Errorf("want just one, got %+v", got)
	}
}

func TestPlanFailure(t *testing.T) {
	p := Plan{}
	if f := p.Failure(); f != nil {
		t.Errorf("nothing failed, and the failure is %v", f)
	}
	first := &outside.Failure{Reason: capstan.ReasonForbidden, Message: "no", Remedy: "ask", Cause: errors.New("first")}
	p.results = []result{{feature: "cors", failure: first}}
	if got := p.Failure(); got.Error() != "cors: no: ask" || got.Reason != capstan.ReasonForbidden || !errors.Is(got, first.Cause) {
		t.Errorf("one failure: %+v", got)
	}
	second := &outside.Failure{Reason: capstan.ReasonRejected, Message: "wrong", Remedy: "correct it", Cause: errors.New("second")}
	p.results = append(p.results, result{feature: "policy", failure: second})
	if got := p.Failure(); got.Error() != "cors: no: ask; policy: wrong: correct it" || !errors.Is(got, second.Cause) {
		t.Errorf("two failures: %+v", got)
	}
}

// SPDX-License-Identifier: Apache-2.0

//go:build integration

package bucket

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	capstan "github.com/capstan-dev/capstan/apis/v1alpha1"
	servers "github.com/capstan-dev/capstan/test/outside"
)

func adopt(cr *v1alpha1.Bucket) { cr.Spec.ForProvider.Adopt = true }

func version(cr *v1alpha1.Bucket) {
	enabled := "Enabled"
	cr.Spec.ForProvider.Versioning = &enabled
}

// TestExisting is about buckets that were there first.
func TestExisting(t *testing.T) {
	cases := map[string]struct {
		reason    string
		tags      map[string]string
		edit      []func(*v1alpha1.Bucket)
		settings  []setting
		connected string
		tagged    map[string]string
	}{
		"WithoutConsent": {
			reason: "A bucket of nobody's is not touched.",
			edit:   []func(*v1alpha1.Bucket){version},
			connected: `NameTaken: bucket "shop-existing-withoutconsent" exists and carries no tag of an owner: ` +
				"choose another name, or set spec.forProvider.adopt to true to take it over",
			tagged: map[string]string{},
		},
		"WithConsent": {
			reason:    "It is taken over on consent, with the tags that it has.",
			tags:      map[string]string{"team": "web"},
			edit:      []func(*v1alpha1.Bucket){version, adopt},
			connected: "Answered",
			tagged:    map[string]string{"team": "web", v1alpha1.TagOwner: cluster + "/shop/existing-withconsent"},
		},
		"ConsentThatTheConfigDoesNotGive": {
			reason:   "On shared ground the platform team has a say.",
			edit:     []func(*v1alpha1.Bucket){version, adopt},
			settings: []setting{func(_ *bench, s *capstan.ClusterProviderConfigSpec) { s.Adoption = "" }},
			connected: `NameTaken: bucket "shop-existing-consentthattheconfigdoesnotgive" exists and carries no tag of an owner: ` +
				`choose another name; ClusterProviderConfig "s3" does not allow to take over buckets`,
			tagged: map[string]string{},
		},
		"AnotherBuckets": {
			reason: "A bucket of another Bucket is not touched, consent or not.",
			tags:   map[string]string{v1alpha1.TagOwner: cluster + "/shop/other"},
			edit:   []func(*v1alpha1.Bucket){version, adopt},
			connected: `NameTaken: bucket "shop-existing-anotherbuckets" belongs to Bucket "other" of this namespace: ` +
				"name another bucket in the annotation crossplane.io/external-name, or use that Bucket",
			tagged: map[string]string{v1alpha1.TagOwner: cluster + "/shop/other"},
		},
		"AnotherClusters": {
			reason: "Whose it is in another cluster is nobody's business here.",
			tags:   map[string]string{v1alpha1.TagOwner: "elsewhere/shop/existing-anotherclusters"},
			edit:   []func(*v1alpha1.Bucket){version, adopt},
			connected: `NameTaken: bucket "shop-existing-anotherclusters" belongs to a Bucket of another namespace or cluster: ` +
				`choose another name; if it is not used any more, set its tag capstan.dev/owner to "` + cluster + `/shop/existing-anotherclusters"`,
			tagged: map[string]string{v1alpha1.TagOwner: "elsewhere/shop/existing-anotherclusters"},
		},
		"Mine": {
			reason:    "A Bucket that was deleted and left its bucket finds it again.",
			tags:      map[string]string{v1alpha1.TagOwner: cluster + "/shop/existing-mine"},
			edit:      []func(*v1alpha1.Bucket){version},
			connected: "Answered",
			tagged:    map[string]string{v1alpha1.TagOwner: cluster + "/shop/existing-mine"},
		},
		"ObserveOnly": {
			reason: "Who only looks needs nobody's consent and leaves no trace.",
			edit: []func(*v1alpha1.Bucket){version, func(cr *v1alpha1.Bucket) {
				cr.Spec.ManagementPolicies = xpv2.ManagementPolicies{xpv2.ManagementActionObserve}
			}},
			connected: "Answered",
			tagged:    map[string]string{},
		},
		"OldAnnotations": {
			reason: "A bucket that was made long after a Create of which nobody knows the end is not its work.",
			edit: []func(*v1alpha1.Bucket){version, func(cr *v1alpha1.Bucket) {
				meta.SetExternalCreatePending(cr, time.Now().Add(-time.Hour))
			}},
			connected: `NameTaken: bucket "shop-existing-oldannotations" exists and carries no tag of an owner: ` +
				"choose another name, or set spec.forProvider.adopt to true to take it over",
			tagged: map[string]string{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, servers.SharedS3(t), tc.settings...)
			b.make(b.named(), tc.tags)
			b.put(b.named(), "precious")
			b.apply(tc.edit...)
			for range 4 {
				b.reconcile()
			}
			if diff := cmp.Diff(tc.connected, b.connected()); diff != "" {
				t.Errorf("%s\n-want, +got condition Connected:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.tagged, b.tags(b.named())); diff != "" {
				t.Errorf("%s\n-want tags, +got tags:\n%s", tc.reason, diff)
			}
			if ready := tc.connected == "Answered"; ready != b.isReady() {
				t.Errorf("%s\nready: want %t, got %+v", tc.reason, ready, b.get().Status)
			}
			if tc.connected != "Answered" || name == "ObserveOnly" {
				if got := b.mutations(); len(got) > 0 {
					t.Errorf("%s\na bucket of somebody else's was changed: %v", tc.reason, got)
				}
			}
			b.quiet()

			// None of these may take anything away, whatever they are.
			b.remove()
			b.reconcile()
			b.reconcile()
			if !b.there(b.named()) {
				t.Errorf("%s\nthe bucket is gone, with what was in it", tc.reason)
			}
			if mine := b.tags(b.named())[v1alpha1.TagOwner] == cluster+"/shop/"+b.bucket().GetName(); mine == b.gone() && name != "ObserveOnly" {
				t.Errorf("%s\nours: %t, and the Bucket is gone: %t", tc.reason, mine, b.gone())
			}
		})
	}
}

// TestCrashInCreate is about a process that dies, or an answer that gets lost, anywhere between the wish for a bucket and its
// tag.
func TestCrashInCreate(t *testing.T) {
	cases := map[string]struct {
		reason string
		call   string
		fault  servers.Fault
		crash  bool
		edit   func(*v1alpha1.Bucket)
	}{
		"NoAnswerToCreate": {
			reason: "The server made the bucket, and nobody heard.",
			call:   "PUT /%s",
			fault:  servers.Drop().Times(1),
		},
		"NoAnswerToCreateAndDead": {
			reason: "And nobody was there to note it.",
			call:   "PUT /%s",
			fault:  servers.Drop().Times(1),
			crash:  true,
		},
		"NeverReached": {
			reason: "The server never heard of the bucket.",
			call:   "PUT /%s",
			fault:  servers.Close().Times(1),
		},
		"TagRefused": {
			reason: "The bucket is there and its tag could not be set.",
			call:   "PUT /%s?tagging",
			fault:  servers.S3Error(500, "InternalError", "We encountered an internal error.").Times(1),
		},
		"TagRefusedAndDead": {
			reason: "The same, and nobody was there to note it.",
			call:   "PUT /%s?tagging",
			fault:  servers.S3Error(500, "InternalError", "We encountered an internal error.").Times(1),
			crash:  true,
		},
		"NoAnswerToTag": {
			reason: "The tag is there, and nobody heard.",
			call:   "PUT /%s?tagging",
			fault:  servers.Drop().Times(1),
		},
		"DeadAfterTag": {
			reason: "All is done, and nobody was there to note it.",
			call:   "PUT /%s?versioning",
			fault:  servers.Close().Times(1),
			crash:  true,
		},
		"WithoutTags": {
			reason: "The same on a server without tags.",
			call:   "PUT /%s",
			fault:  servers.Drop().Times(1),
			crash:  true,
			edit:   own,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, servers.SharedS3(t))
			bucketName := b.named()
			edits := []func(*v1alpha1.Bucket){version}
			if tc.edit != nil {
				edits = append(edits, tc.edit)
				bucketName = b.bucket().GetName()
				b.proxy.Fail(servers.Call("GET /"+bucketName+"?tagging"), servers.S3Error(501, "NotImplemented", "Not implemented."))
			}
			b.proxy.Fail(exactly(strings.ReplaceAll(tc.call, "%s", bucketName)), tc.fault)
			b.apply(edits...)
			b.crash = tc.crash
			b.reconcile()
			b.reconcile()
			b.crash = false
			b.settle()
			if !b.isReady() || b.connected() != "Answered" {
				t.Fatalf("%s\nthe Bucket is not ready: %+v", tc.reason, b.get().Status)
			}
			made := 0
			for _, r := range b.mutations() {
				if r == "PUT /"+bucketName {
					made++
				}
			}
			if want := map[bool]int{true: 2, false: 1}[name == "NeverReached"]; made != want {
				t.Errorf("%s\nthe bucket was made %d times, want %d: %v", tc.reason, made, want, b.mutations())
			}
			b.quiet()
			b.remove()
			b.settle()
			if b.there(bucketName) {
				t.Errorf("%s\nthe bucket is left behind", tc.reason)
			}
		})
	}
}

// TestStrangerInCreate is about somebody who makes the same bucket at the same moment.
func TestStrangerInCreate(t *testing.T) {
	b := newBench(t, servers.SharedS3(t))
	stranger := cluster + "/shop/other"
	b.proxy.Fail(during("PUT /"+b.named(), func() { b.make(b.named(), map[string]string{v1alpha1.TagOwner: stranger}) }), servers.Fault{})
	b.apply(version)
	for range 4 {
		b.reconcile()
	}
	if got := b.connected(); !strings.HasPrefix(got, "NameTaken: ") {
		t.Errorf("Connected is %q, want NameTaken", got)
	}
	if got := b.tags(b.named())[v1alpha1.TagOwner]; got != stranger {
		t.Errorf("the owner is %q, want %q", got, stranger)
	}
	b.remove()
	b.reconcile()
	if !b.gone() || !b.there(b.named()) {
		t.Errorf("the Bucket is gone: %t, the stranger's bucket is there: %t; want both", b.gone(), b.there(b.named()))
	}
}

// TestNames is about names that a Bucket must not have.
func TestNames(t *testing.T) {
	cases := map[string]struct {
		reason    string
		edit      func(*v1alpha1.Bucket)
		connected string
	}{
		"AnothersGround": {
			reason: "An external name does not lead out of one's own ground.",
			edit:   func(cr *v1alpha1.Bucket) { meta.SetExternalName(cr, "bank-vault") },
			connected: `Forbidden: bucket "bank-vault" is not on the ground of namespace "shop": with ClusterProviderConfig "s3" ` +
				`its name must begin with "shop-": correct the annotation crossplane.io/external-name, or use a ProviderConfig of your own`,
		},
		"JustLooking": {
			reason: "Neither does one that is only to be looked at.",
			edit: func(cr *v1alpha1.Bucket) {
				meta.SetExternalName(cr, "bank-vault")
				cr.Spec.ManagementPolicies = xpv2.ManagementPolicies{xpv2.ManagementActionObserve}
			},
			connected: `Forbidden: bucket "bank-vault" is not on the ground of namespace "shop": with ClusterProviderConfig "s3" ` +
				`its name must begin with "shop-": correct the annotation crossplane.io/external-name, or use a ProviderConfig of your own`,
		},
		"Traversal": {
			reason: "A name is no path.",
			edit:   func(cr *v1alpha1.Bucket) { meta.SetExternalName(cr, "shop-/../bank-vault") },
			connected: `Rejected: "shop-/../bank-vault" cannot be the name of a bucket: it must consist of lower-case letters, digits, ` +
				"dashes and single dots, and begin and end with a letter or a digit: " +
				"choose another metadata.name, or set the annotation crossplane.io/external-name",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, servers.SharedS3(t))
			b.apply(tc.edit)
			for range 3 {
				b.reconcile()
			}
			if diff := cmp.Diff(tc.connected, b.connected()); diff != "" {
				t.Errorf("%s\n-want, +got condition Connected:\n%s", tc.reason, diff)
			}
			if b.proxy.Count() != 0 {
				t.Errorf("%s\nthe server was asked: %v", tc.reason, b.proxy.Requests())
			}
			b.remove()
			b.reconcile()
			if !b.gone() {
				t.Errorf("%s\nthe Bucket cannot be deleted: %+v", tc.reason, b.get().Status)
			}
		})
	}
}

// TestRenamed is about a Bucket whose external name is changed later.
func TestRenamed(t *testing.T) {
	b := newBench(t, servers.SharedS3(t))
	b.apply()
	b.settle()
	b.change(func(cr *v1alpha1.Bucket) { meta.SetExternalName(cr, "shop-renamed-to") })
	b.proxy.Reset()
	b.reconcile()
	want := `Rejected: the external name was changed from "shop-renamed" to "shop-renamed-to", and a bucket cannot be renamed: ` +
		`set the annotation crossplane.io/external-name back to "shop-renamed", or make another Bucket`
	if diff := cmp.Diff(want, b.connected()); diff != "" {
		t.Errorf("-want, +got condition Connected:\n%s", diff)
	}
	b.remove()
	b.reconcile()
	if b.gone() || b.proxy.Count() != 0 {
		t.Errorf("the Bucket is gone: %t, requests: %v; want a Bucket that remembers its bucket", b.gone(), b.proxy.Requests())
	}
	b.change(func(cr *v1alpha1.Bucket) { meta.SetExternalName(cr, b.named()) })
	b.settle()
	if b.there(b.named()) {
		t.Error("the bucket is left behind")
	}
}

// TestWithoutTags is about a server that has no tags: what the Bucket knows decides.
func TestWithoutTags(t *testing.T) {
	notImplemented := servers.S3Error(501, "NotImplemented", "Not implemented.")
	cases := map[string]struct {
		reason string
		before func(b *bench)
		edit   []func(*v1alpha1.Bucket)
		ready  bool
	}{
		"Made": {
			reason: "What a Bucket has made is its own.",
			edit:   []func(*v1alpha1.Bucket){version},
			ready:  true,
		},
		"Existing": {
			reason: "What was there is not.",
			before: func(b *bench) { b.make(b.named(), nil) },
			edit:   []func(*v1alpha1.Bucket){version},
		},
		"Adopted": {
			reason: "Unless it is taken over.",
			before: func(b *bench) { b.make(b.named(), nil) },
			edit:   []func(*v1alpha1.Bucket){version, adopt},
			ready:  true,
		},
		"ClaimedOnSharedGround": {
			reason: "An annotation that anybody can write proves nothing among strangers.",
			before: func(b *bench) { b.make(b.named(), nil); b.put(b.named(), "precious") },
			edit: []func(*v1alpha1.Bucket){version, func(cr *v1alpha1.Bucket) {
				meta.SetExternalCreateSucceeded(cr, time.Now())
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, servers.SharedS3(t))
			b.proxy.Fail(servers.Call("GET /"+b.named()+"?tagging"), notImplemented)
			b.proxy.Fail(servers.Call("PUT /"+b.named()+"?tagging"), notImplemented)
			if tc.before != nil {
				tc.before(b)
			}
			b.apply(append(tc.edit, func(cr *v1alpha1.Bucket) { cr.Spec.ForProvider.Tags = map[string]string{"team": "shop"} })...)
			for range 4 {
				b.reconcile()
			}
			if b.isReady() != tc.ready {
				t.Errorf("%s\nready: want %t, got %+v", tc.reason, tc.ready, b.get().Status)
			}
			if !tc.ready {
				if got := b.mutations(); len(got) > 0 {
					t.Errorf("%s\na bucket of somebody else's was changed: %v", tc.reason, got)
				}
			} else if diff := cmp.Diff([]string{"tags"}, b.get().Status.AtProvider.Unsupported); diff != "" {
				t.Errorf("%s\n-want unsupported, +got unsupported:\n%s", tc.reason, diff)
			}
			b.quiet()
			b.remove()
			for range 3 {
				if !b.gone() {
					b.reconcile()
				}
			}
			if b.there(b.named()) == tc.ready {
				t.Errorf("%s\nthe bucket is there after the Bucket was deleted: %t", tc.reason, !tc.ready)
			}
		})
	}
}

// TestImport is about a bucket that is only looked at.
func TestImport(t *testing.T) {
	b := newBench(t, servers.SharedS3(t))
	b.make("shop-imported-one", nil)
	b.apply(func(cr *v1alpha1.Bucket) {
		meta.SetExternalName(cr, "shop-imported-one")
		cr.Spec.ManagementPolicies = xpv2.ManagementPolicies{xpv2.ManagementActionObserve}
		cr.Spec.WriteConnectionSecretToReference = &xpv2.LocalSecretReference{Name: "imported"}
	})
	b.settle()
	if diff := cmp.Diff([]string{"HEAD /shop-imported-one"}, b.quiet()); diff != "" {
		t.Errorf("-want, +got requests of a look:\n%s", diff)
	}
	want := v1alpha1.BucketObservation{BucketName: "shop-imported-one", Region: "us-east-1", Endpoint: b.proxy.URL}
	if diff := cmp.Diff(want, b.get().Status.AtProvider); diff != "" {
		t.Errorf("-want status, +got status:\n%s", diff)
	}

	// Policies that let it act do not make it the bucket's owner.
	b.change(func(cr *v1alpha1.Bucket) {
		cr.Spec.ManagementPolicies = xpv2.ManagementPolicies{xpv2.ManagementActionAll}
	})
	b.reconcile()
	if got := b.connected(); !strings.HasPrefix(got, "NameTaken: ") || len(b.mutations()) > 0 {
		t.Errorf("Connected is %q and there were %v, want NameTaken and nothing", got, b.mutations())
	}
}

// TestPrefixTaken is about the platform team's changing the prefix later.
func TestPrefixTaken(t *testing.T) {
	b := newBench(t, servers.SharedS3(t))
	b.apply()
	b.settle()
	pc := &capstan.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "s3"}}
	if err := b.Get(t.Context(), client.ObjectKeyFromObject(pc), pc); err != nil {
		t.Fatal(err)
	}
	prefix := "tenant-{namespace}-"
	pc.Spec.S3.BucketPrefix = &prefix
	pc.Generation++
	if err := b.Update(t.Context(), pc); err != nil {
		t.Fatal(err)
	}
	b.remove()
	b.reconcile()

	// What the Bucket has made is not forgotten.
	if got := b.connected(); b.gone() || !strings.HasPrefix(got, string(capstan.ReasonForbidden)) {
		t.Errorf("the Bucket is gone: %t, Connected is %q; want a Bucket that remembers its bucket, and Forbidden", b.gone(), got)
	}
}

// TestStrangerBeforeCreate is about somebody who makes the same bucket between Observe and Create, on a server that answers a
// second creation as if it were the first.
func TestStrangerBeforeCreate(t *testing.T) {
	b := newBench(t, servers.SharedAWS(t))
	heads := 0
	b.proxy.Fail(func(r *http.Request) bool {
		if r.Method == http.MethodHead {
			if heads++; heads == 2 {
				b.make(b.named(), nil)
			}
		}
		return false
	}, servers.Fault{})
	b.apply(version)
	for range 4 {
		b.reconcile()
	}
	if got := b.connected(); !strings.HasPrefix(got, "NameTaken: ") || len(b.mutations()) > 0 {
		t.Errorf("Connected is %q and there were %v, want NameTaken and nothing", got, b.mutations())
	}
	if diff := cmp.Diff(map[string]string{}, b.tags(b.named())); diff != "" {
		t.Errorf("-want tags, +got tags:\n%s", diff)
	}
}

// TestConsentIsNoConsentToDelete is about a bucket that could be taken over, and was not, before its Bucket goes.
func TestConsentIsNoConsentToDelete(t *testing.T) {
	b := newBench(t, servers.SharedS3(t))
	b.apply(adopt)
	b.settle()
	if _, err := b.s3.DeleteBucketTagging(t.Context(), &awss3.DeleteBucketTaggingInput{Bucket: aws.String(b.named())}); err != nil {
		t.Fatal(err)
	}
	b.remove()
	b.reconcile()
	b.reconcile()
	if !b.gone() || !b.there(b.named()) {
		t.Errorf("the Bucket is gone: %t, the bucket is there: %t; want both", b.gone(), b.there(b.named()))
	}
}

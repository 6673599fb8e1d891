// SPDX-License-Identifier: Apache-2.0

//go:build integration

package bucket

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/provider/bucket/feature"
	servers "github.com/capstan-dev/capstan/test/outside"
)

func TestLifeOfABucket(t *testing.T) {
	for name, server := range map[string]func(testing.TB) *servers.S3Server{"S3": servers.SharedS3, "AWS": servers.SharedAWS} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, server(t))
			b.apply()
			b.settle()
			if !b.isReady() || b.connected() != "Answered" {
				t.Fatalf("the Bucket is not ready: %+v", b.get().Status)
			}
			want := v1alpha1.BucketObservation{BucketName: b.named(), Region: "us-east-1", Endpoint: b.proxy.URL, Owned: true}
			if diff := cmp.Diff(want, b.get().Status.AtProvider); diff != "" {
				t.Errorf("-want status, +got status:\n%s", diff)
			}
			tags := map[string]string{v1alpha1.TagOwner: cluster + "/" + namespace + "/" + b.bucket().GetName()}
			if diff := cmp.Diff(tags, b.tags(b.named())); diff != "" {
				t.Errorf("-want tags, +got tags:\n%s", diff)
			}
			if diff := cmp.Diff([]string{"HEAD /" + b.named(), "GET /" + b.named() + "?tagging"}, b.quiet()); diff != "" {
				t.Errorf("-want requests, +got requests of a look at a Bucket without features:\n%s", diff)
			}
			b.remove()
			b.settle()
			if b.there(b.named()) {
				t.Error("the bucket outlives a Bucket whose policies include Delete")
			}
		})
	}
}

// A feature's values: at first, changed, and what the server has then.
type featureCase struct {
	reason string

	first, then func(p *v1alpha1.BucketParameters)

	// none takes the feature out of the spec.
	none func(p *v1alpha1.BucketParameters)

	// set are the requests that set it, gone those that remove it.
	set, gone string

	// read is the request that looks at it, "" when there is none.
	read string
}

func featureCases() map[string]featureCase {
	return map[string]featureCase{
		"versioning": {
			reason: "Versioning can be suspended, and is when it is no longer asked for.",
			first:  func(p *v1alpha1.BucketParameters) { p.Versioning = new("Suspended") },
			then:   func(p *v1alpha1.BucketParameters) { p.Versioning = new("Enabled") },
			none:   func(p *v1alpha1.BucketParameters) { p.Versioning = nil },
			set:    "PUT /%s?versioning", gone: "PUT /%s?versioning", read: "GET /%s?versioning",
		},
		"encryption": {
			reason: "The server encrypts by itself.",
			first: func(p *v1alpha1.BucketParameters) {
				p.Encryption = &v1alpha1.Encryption{Algorithm: "aws:kms", KMSKeyID: new("alias/backups"), BucketKey: new(true)}
			},
			then: func(p *v1alpha1.BucketParameters) { p.Encryption = &v1alpha1.Encryption{Algorithm: "AES256"} },
			none: func(p *v1alpha1.BucketParameters) { p.Encryption = nil },
			set:  "PUT /%s?encryption", gone: "DELETE /%s?encryption", read: "GET /%s?encryption",
		},
		"lifecycleRules": {
			reason: "Every kind of filter and action.",
			first: func(p *v1alpha1.BucketParameters) {
				p.LifecycleRules = []v1alpha1.LifecycleRule{
					{ID: "z-all", AbortUploadsAfterDays: new(int32(7)), ExpireDeleteMarkers: true},
					{ID: "prefix", Prefix: new("wal/"), ExpireAfterDays: new(int32(30))},
					{ID: "tag", Tags: map[string]string{"kind": "temporary"}, ExpireAfterDays: new(int32(1))},
					{
						ID: "all-of", Prefix: new("old/"), Tags: map[string]string{"a": "1", "b": "2"},
						ExpireNoncurrentAfterDays: new(int32(9)), // The simulator forgets keepNoncurrentVersions.
					},
				}
			},
			then: func(p *v1alpha1.BucketParameters) {
				p.LifecycleRules = []v1alpha1.LifecycleRule{{ID: "prefix", Prefix: new("wal/"), ExpireAfterDays: new(int32(31))}}
			},
			none: func(p *v1alpha1.BucketParameters) { p.LifecycleRules = nil },
			set:  "PUT /%s?lifecycle", gone: "DELETE /%s?lifecycle", read: "GET /%s?lifecycle",
		},
		"policy": {
			reason: "A policy is compared by what it means.",
			first:  func(p *v1alpha1.BucketParameters) { p.Policy = new(`{{policy GetObject}}`) },
			then:   func(p *v1alpha1.BucketParameters) { p.Policy = new(`{{policy PutObject}}`) },
			none:   func(p *v1alpha1.BucketParameters) { p.Policy = nil },
			set:    "PUT /%s?policy", gone: "DELETE /%s?policy", read: "GET /%s?policy",
		},
		"corsRules": {
			reason: "Order within a rule does not matter, that of rules does.",
			first: func(p *v1alpha1.BucketParameters) {
				p.CORSRules = []v1alpha1.CORSRule{
					{
						AllowedOrigins: []string{"https://shop.example.org", "https://*.example.com"}, AllowedMethods: []string{"PUT", "GET"},
						AllowedHeaders: []string{"X-Two", "x-one"}, ExposeHeaders: []string{"ETag"}, MaxAgeSeconds: new(int32(3600)),
					},
					{AllowedOrigins: []string{"*"}, AllowedMethods: []string{"HEAD"}},
				}
			},
			then: func(p *v1alpha1.BucketParameters) {
				p.CORSRules = []v1alpha1.CORSRule{
					{AllowedOrigins: []string{"*"}, AllowedMethods: []string{"HEAD"}, MaxAgeSeconds: new(int32(0))},
				}
			},
			none: func(p *v1alpha1.BucketParameters) { p.CORSRules = nil },
			set:  "PUT /%s?cors", gone: "DELETE /%s?cors", read: "GET /%s?cors",
		},
		"tags": {
			reason: "Tags are read anyway, to see whose the bucket is.",
			first:  func(p *v1alpha1.BucketParameters) { p.Tags = map[string]string{"team": "shop", "cost": "42"} },
			then:   func(p *v1alpha1.BucketParameters) { p.Tags = map[string]string{"team": "web"} },
			none:   func(p *v1alpha1.BucketParameters) { p.Tags = nil },
			set:    "PUT /%s?tagging", gone: "PUT /%s?tagging",
		},
		"publicAccessBlock": {
			reason: "What is left out is forbidden.",
			first:  func(p *v1alpha1.BucketParameters) { p.PublicAccessBlock = &v1alpha1.PublicAccessBlock{} },
			then: func(p *v1alpha1.BucketParameters) {
				p.PublicAccessBlock = &v1alpha1.PublicAccessBlock{BlockPublicPolicy: new(false)}
			},
			none: func(p *v1alpha1.BucketParameters) { p.PublicAccessBlock = nil },
			set:  "PUT /%s?publicAccessBlock", gone: "DELETE /%s?publicAccessBlock", read: "GET /%s?publicAccessBlock",
		},
	}
}

// fill in what depends on the bucket's name.
func fill(p *v1alpha1.BucketParameters, name string) {
	if p.Policy == nil {
		return
	}
	for _, action := range []string{"GetObject", "PutObject"} {
		if *p.Policy == "{{policy "+action+"}}" {
			p.Policy = new(fmt.Sprintf(`{
				"Version": "2012-10-17",
				"Statement": {"Sid": "", "Principal": "*", "Effect": "Allow", "Resource": ["arn:aws:s3:::%s/*"], "Action": "s3:%s"}
			}`, name, action))
		}
	}
}

// lacks are the features that a server does not have.
var lacks = map[string][]string{"S3": {"encryption", "lifecycleRules", "publicAccessBlock"}}

// TestFeatures sets, changes and removes each feature, on real servers.
func TestFeatures(t *testing.T) {
	for on, server := range map[string]func(testing.TB) *servers.S3Server{"S3": servers.SharedS3, "AWS": servers.SharedAWS} {
		for feature, tc := range featureCases() {
			if slices.Contains(lacks[on], feature) {
				continue
			}
			t.Run(on+"/"+feature, func(t *testing.T) {
				b := newBench(t, server(t))
				name := b.named()
				ask := func(edit func(*v1alpha1.BucketParameters)) func(*v1alpha1.Bucket) {
					return func(cr *v1alpha1.Bucket) {
						edit(&cr.Spec.ForProvider)
						fill(&cr.Spec.ForProvider, name)
					}
				}
				b.apply(ask(tc.first))
				b.settle()
				look := []string{"HEAD /" + name, "GET /" + name + "?tagging"}
				if tc.read != "" {
					look = append(look, fmt.Sprintf(tc.read, name))
				}
				if diff := cmp.Diff(look, b.quiet()); diff != "" {
					t.Errorf("%s\n-want requests, +got requests of a look:\n%s", tc.reason, diff)
				}
				b.change(ask(tc.then))
				b.proxy.Reset()
				b.settle()
				if diff := cmp.Diff([]string{fmt.Sprintf(tc.set, name)}, b.mutations()); diff != "" {
					t.Errorf("%s\n-want, +got requests that change the feature:\n%s", tc.reason, diff)
				}
				b.quiet()
				if diff := cmp.Diff([]string{feature}, b.get().Status.AtProvider.Features); diff != "" {
					t.Errorf("%s\n-want features, +got features:\n%s", tc.reason, diff)
				}
				b.change(ask(tc.none))
				b.proxy.Reset()
				b.settle()
				if diff := cmp.Diff([]string{fmt.Sprintf(tc.gone, name)}, b.mutations()); diff != "" {
					t.Errorf("%s\n-want, +got requests that remove the feature:\n%s", tc.reason, diff)
				}
				if diff := cmp.Diff(look[:2], b.quiet()); diff != "" {
					t.Errorf("%s\na feature that is gone is asked for: -want, +got:\n%s", tc.reason, diff)
				}
				if at := b.get().Status.AtProvider; at.Features != nil || at.TagKeys != nil {
					t.Errorf("%s\na feature that is gone is in the status: %+v", tc.reason, at)
				}
				if !b.isReady() || b.connected() != "Answered" {
					t.Errorf("%s\nthe Bucket is not ready: %+v", tc.reason, b.get().Status)
				}
				b.remove()
				b.settle()
			})
		}
	}
}

// TestAllFeatures asks for everything at once: what a server lacks is named, and everything else is there.
func TestAllFeatures(t *testing.T) {
	cases := map[string]struct {
		server      func(testing.TB) *servers.S3Server
		unsupported []string
		supported   string
	}{
		"S3": {
			server:      servers.SharedS3,
			unsupported: []string{"encryption", "lifecycleRules", "publicAccessBlock"},
			supported: "NotImplemented: the server does not implement encryption, lifecycleRules, publicAccessBlock: " +
				"take it out of spec.forProvider, or use a server that has it",
		},
		"AWS": {server: servers.SharedAWS, supported: "Supported"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tc.server(t))
			b.apply(func(cr *v1alpha1.Bucket) {
				for _, f := range featureCases() {
					f.then(&cr.Spec.ForProvider)
				}
				cr.Spec.ForProvider.ObjectLock = &v1alpha1.ObjectLock{
					DefaultRetention: &v1alpha1.Retention{Mode: "Governance", Days: new(int32(30))},
				}
				fill(&cr.Spec.ForProvider, b.named())
			})
			b.settle()
			all := []string{
				"corsRules", "encryption", "lifecycleRules", "objectLock", "policy", "publicAccessBlock", "tags", "versioning",
			}
			want := slices.DeleteFunc(slices.Clone(all), func(f string) bool { return slices.Contains(tc.unsupported, f) })
			at := b.get().Status.AtProvider
			if diff := cmp.Diff(want, at.Features); diff != "" {
				t.Errorf("-want features, +got features:\n%s", diff)
			}
			if diff := cmp.Diff(tc.unsupported, at.Unsupported); diff != "" {
				t.Errorf("-want unsupported, +got unsupported:\n%s", diff)
			}
			if diff := cmp.Diff(tc.supported, told(b.get().GetCondition(v1alpha1.TypeFeaturesSupported))); diff != "" {
				t.Errorf("-want, +got condition FeaturesSupported:\n%s", diff)
			}
			if !b.isReady() || b.connected() != "Answered" {
				t.Errorf("the Bucket is not ready: %+v", b.get().Status)
			}

			// HEAD, tagging, and one for each feature but tags.
			if got, want := len(b.quiet()), 2+len(all)-1; got != want {
				t.Errorf("a look at a Bucket with all features takes %d requests, want %d: %v", got, want, b.proxy.Requests())
			}
			b.change(func(cr *v1alpha1.Bucket) {
				cr.Spec.ForProvider = v1alpha1.BucketParameters{ObjectLock: &v1alpha1.ObjectLock{}}
			})
			b.settle()
			if diff := cmp.Diff([]string{"objectLock"}, b.get().Status.AtProvider.Features); diff != "" {
				t.Errorf("-want features, +got features without all but the lock:\n%s", diff)
			}
			if v, err := b.s3.GetBucketVersioning(t.Context(), &awss3.GetBucketVersioningInput{Bucket: aws.String(b.named())}); err != nil || v.Status != "Enabled" {
				t.Errorf("versioning is %v (%v) under an object lock, want Enabled", v, err)
			}
			b.quiet()
			b.remove()
			b.settle()
		})
	}
}

// TestOperations shows that metrics tell what was done, by the names of S3.
func TestOperations(t *testing.T) {
	b := newBench(t, servers.SharedS3(t))
	b.apply(version)
	b.settle()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, f := range families {
		if f.GetName() != "capstan_outside_request_duration_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				got[l.GetName()+"="+l.GetValue()] = true
			}
		}
	}
	for _, want := range []string{
		"service=s3", "status=200", "operation=HeadBucket", "operation=CreateBucket", "operation=GetBucketTagging",
		"operation=PutBucketTagging", "operation=GetBucketVersioning", "operation=PutBucketVersioning",
	} {
		if !got[want] {
			t.Errorf("no metric has %s: %v", want, got)
		}
	}
}

// TestConnection shows what users of a bucket are told, and what not.
func TestConnection(t *testing.T) {
	b := newBench(t, servers.SharedS3(t))
	b.apply(func(cr *v1alpha1.Bucket) {
		cr.Spec.WriteConnectionSecretToReference = &xpv2.LocalSecretReference{Name: "connection"}
	})
	b.settle()
	s := &corev1.Secret{}
	if err := b.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "connection"}, s); err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{
		"endpoint":        []byte(b.proxy.URL),
		"region":          []byte("us-east-1"),
		"bucket":          []byte(b.named()),
		"accessKeyId":     []byte("workload"),
		"secretAccessKey": []byte("workload-" + canary),
		"ca.crt":          b.proxy.CA,
	}
	if diff := cmp.Diff(want, s.Data); diff != "" {
		t.Errorf("-want, +got connection Secret:\n%s", diff)
	}
}

// TestConnectionWithoutKey is about a config that gives no key to users of buckets: they do not get the provider's.
func TestConnectionWithoutKey(t *testing.T) {
	b := newBench(t, servers.SharedS3(t))
	b.apply(own, func(cr *v1alpha1.Bucket) {
		cr.Spec.WriteConnectionSecretToReference = &xpv2.LocalSecretReference{Name: "connection"}
	})
	b.settle()
	s := &corev1.Secret{}
	if err := b.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "connection"}, s); err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{
		"endpoint": []byte(b.proxy.URL), "region": []byte("us-east-1"), "bucket": []byte(b.bucket().GetName()), "ca.crt": b.proxy.CA,
	}
	if diff := cmp.Diff(want, s.Data); diff != "" {
		t.Errorf("-want, +got connection Secret:\n%s", diff)
	}
}

// TestRemembersFirst shows that what is about to be set is in the status before it is set, so that a crash in between leaves
// nothing that nobody knows of.
func TestRemembersFirst(t *testing.T) {
	b := newBench(t, servers.SharedS3(t))
	b.apply()
	b.settle()
	features, keys := []string(nil), []string(nil)
	b.proxy.Fail(during("PUT /"+b.named()+"?versioning", func() {
		features, keys = b.get().Status.AtProvider.Features, b.get().Status.AtProvider.TagKeys
	}), servers.Fault{})
	b.change(func(cr *v1alpha1.Bucket) {
		version(cr)
		cr.Spec.ForProvider.Tags = map[string]string{"team": "shop"}
	})
	b.settle()
	if diff := cmp.Diff([][]string{{"tags", "versioning"}, {"team"}}, [][]string{features, keys}); diff != "" {
		t.Errorf("-want, +got features and tags in the status when the first was set:\n%s", diff)
	}
}

// TestOrder shows that a bucket is never more public than before and after.
func TestOrder(t *testing.T) {
	b := newBench(t, servers.SharedAWS(t))
	name := b.named()
	b.apply(func(cr *v1alpha1.Bucket) {
		p := &cr.Spec.ForProvider
		p.Policy = new(`{{policy GetObject}}`)
		p.PublicAccessBlock = &v1alpha1.PublicAccessBlock{BlockPublicPolicy: new(false)}
		fill(p, name)
	})
	b.settle()
	want := []string{"PUT /" + name, "PUT /" + name + "?tagging", "PUT /" + name + "?publicAccessBlock", "PUT /" + name + "?policy"}
	if diff := cmp.Diff(want, b.mutations()); diff != "" {
		t.Errorf("-want, +got requests that set both:\n%s", diff)
	}
	b.change(func(cr *v1alpha1.Bucket) { cr.Spec.ForProvider = v1alpha1.BucketParameters{} })
	b.proxy.Reset()
	b.settle()
	want = []string{"DELETE /" + name + "?policy", "DELETE /" + name + "?publicAccessBlock"}
	if diff := cmp.Diff(want, b.mutations()); diff != "" {
		t.Errorf("-want, +got requests that remove both:\n%s", diff)
	}
}

// TestTagLost is about somebody who replaces all tags of a bucket by their own.
func TestTagLost(t *testing.T) {
	b := newBench(t, servers.SharedS3(t))
	b.apply(version)
	b.settle()
	owner := b.tags(b.named())
	swap := func(with map[string]string) {
		if _, err := (feature.Bucket{API: b.s3, Name: b.named(), Owner: owner[v1alpha1.TagOwner]}).Retag(t.Context(), func(all map[string]string) {
			clear(all)
			maps.Copy(all, with)
		}); err != nil {
			t.Fatal(err)
		}
	}
	swap(map[string]string{"team": "web"})
	b.change(func(cr *v1alpha1.Bucket) { cr.Spec.ForProvider.Versioning = nil })
	b.proxy.Reset()
	b.reconcile()
	if got := b.connected(); !strings.HasPrefix(got, "NameTaken: ") || len(b.mutations()) > 0 {
		t.Errorf("Connected is %q and there were %v, want NameTaken and nothing", got, b.mutations())
	}

	// With the tag comes back what has been set, and is no longer asked for.
	swap(owner)
	b.settle()
	if diff := cmp.Diff([]string{"PUT /" + b.named() + "?versioning"}, b.mutations()); diff != "" {
		t.Errorf("-want, +got changes:\n%s", diff)
	}
}

// TestReadButNotSet is about a server that says how a feature is and does not let it be set (Garage says of versioning that it is
// off).
func TestReadButNotSet(t *testing.T) {
	b := newBench(t, servers.SharedS3(t))
	b.proxy.Fail(servers.Call("PUT /"+b.named()+"?versioning"), servers.S3Error(501, "NotImplemented", "Not implemented."))
	b.apply(version)
	b.settle()
	b.settle()
	if at := b.get().Status.AtProvider; !slices.Equal(at.Unsupported, []string{"versioning"}) || at.Features != nil || !b.isReady() {
		t.Errorf("want a Bucket that is ready and whose versioning is unsupported, got %+v", b.get().Status)
	}
	b.writes = 0
	b.settle()
	if b.writes != 0 {
		t.Errorf("what the server does not have was told %d times", b.writes)
	}
}

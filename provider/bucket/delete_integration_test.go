// SPDX-License-Identifier: Apache-2.0

//go:build integration

package bucket

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/go-cmp/cmp"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/provider/bucket/content"
	servers "github.com/capstan-dev/capstan/test/outside"
)

func force(cr *v1alpha1.Bucket) { cr.Spec.ForProvider.ForceDestroy = true }

// upload begins one and does not finish it.
func (b *bench) upload(name, key string) {
	b.t.Helper()
	if _, err := b.s3.CreateMultipartUpload(b.t.Context(), &awss3.CreateMultipartUploadInput{
		Bucket: aws.String(name), Key: aws.String(key),
	}); err != nil {
		b.t.Fatal(err)
	}
}

func TestDeleteNotEmpty(t *testing.T) {
	for on, server := range map[string]func(testing.TB) *servers.S3Server{"S3": servers.SharedS3, "AWS": servers.SharedAWS} {
		t.Run(on, func(t *testing.T) {
			b := newBench(t, server(t))
			b.apply(version)
			b.settle()
			for _, key := range []string{"a", "b", "b", "b", "c"} {
				b.put(b.named(), key)
			}
			if _, err := b.s3.DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: aws.String(b.named()), Key: aws.String("c")}); err != nil {
				t.Fatal(err)
			}
			b.upload(b.named(), "unfinished")
			b.proxy.Reset()
			b.remove()
			b.reconcile()
			b.reconcile()
			want := fmt.Sprintf("NotEmpty: bucket %q holds 2 objects, 3 old versions, 1 delete marker, 1 unfinished upload: empty it, "+
				"or set spec.forProvider.forceDestroy to true to delete all of it, or take Delete out of spec.managementPolicies to keep the bucket", b.named())
			if diff := cmp.Diff(want, b.connected()); diff != "" {
				t.Errorf("-want, +got condition Connected:\n%s", diff)
			}
			if got := b.mutations(); len(got) > 0 {
				t.Errorf("a bucket that holds something was changed: %v", got)
			}
			b.quiet()
			b.change(force)
			b.settle()
			if b.there(b.named()) {
				t.Error("the bucket is left, although it may be destroyed")
			}
		})
	}
}

// TestForceDestroy is about more than goes into a page, and keys that XML does not know.
func TestForceDestroy(t *testing.T) {
	b := newBench(t, servers.SharedS3(t))
	b.apply(version, force)
	b.settle()
	for i := range 1100 {
		b.put(b.named(), fmt.Sprintf("many/%d", i))
	}
	for _, key := range []string{"a b+c%20&<>\"'", "ü/€/😀", "line\nbreak", "tab\tulator"} {
		b.put(b.named(), key)
	}
	b.proxy.Reset()
	b.remove()
	b.settle()
	if b.there(b.named()) {
		t.Error("the bucket is left")
	}
	batches := 0
	for _, r := range b.mutations() {
		if strings.HasPrefix(r, "POST ") {
			batches++
		}
	}
	if batches != 2 {
		t.Errorf("1100 objects were deleted in %d batches, want 2: %v", batches, b.mutations())
	}
}

// TestForceDestroyStopsInTime is about a bucket that cannot be emptied within one reconcile: the next one goes on, and no error
// is told.
func TestForceDestroyStopsInTime(t *testing.T) {
	b := newBench(t, servers.SharedS3(t), timeout(content.Reserve+3*time.Second))
	b.apply(version, force)
	b.settle()
	for i := range 1100 {
		b.put(b.named(), fmt.Sprintf("many/%d", i))
	}
	b.proxy.Fail(servers.Call("POST /"+b.named()+"?delete"), servers.Delay(4*time.Second).Times(1))
	b.remove()
	b.reconcile()
	if got := b.connected(); b.gone() || got != "Answered" {
		t.Errorf("the Bucket is gone: %t, Connected is %q; want one that goes on", b.gone(), got)
	}
	b.settle()
	if b.there(b.named()) {
		t.Error("the bucket is left")
	}
}

// TestRetention is about what must not be deleted, not even by force.
func TestRetention(t *testing.T) {
	b := newBench(t, servers.SharedS3(t))
	b.apply(force, func(cr *v1alpha1.Bucket) {
		cr.Spec.ForProvider.ObjectLock = &v1alpha1.ObjectLock{
			DefaultRetention: &v1alpha1.Retention{Mode: "Governance", Days: new(int32(1))},
		}
	})
	b.settle()
	if diff := cmp.Diff([]string{"objectLock"}, b.get().Status.AtProvider.Features); diff != "" {
		t.Errorf("-want features, +got features:\n%s", diff)
	}
	b.quiet()
	if _, err := b.s3.PutObject(t.Context(), &awss3.PutObjectInput{
		Bucket: aws.String(b.named()), Key: aws.String("precious"), Body: strings.NewReader("precious"),
		ObjectLockMode: types.ObjectLockModeGovernance, ObjectLockRetainUntilDate: aws.Time(time.Now().Add(time.Hour)),
	}); err != nil {
		t.Fatal(err)
	}
	b.change(func(cr *v1alpha1.Bucket) { cr.Spec.ForProvider.ObjectLock.DefaultRetention = nil })
	b.settle()
	b.quiet()
	b.put(b.named(), "rubbish")
	b.remove()
	b.reconcile()
	b.reconcile()
	want := fmt.Sprintf("NotEmpty: bucket %q holds 1 object or version under a retention that has not ended, or under a legal hold: "+
		"wait for the end of the retention, or take Delete out of spec.managementPolicies to keep the bucket", b.named())
	if diff := cmp.Diff(want, b.connected()); diff != "" {
		t.Errorf("-want, +got condition Connected:\n%s", diff)
	}
	out, err := b.s3.ListObjectVersions(t.Context(), &awss3.ListObjectVersionsInput{Bucket: aws.String(b.named())})
	if err != nil {
		t.Fatal(err)
	}
	left := []string{}
	for _, v := range out.Versions {
		left = append(left, aws.ToString(v.Key))
	}
	if diff := cmp.Diff([]string{"precious"}, left); diff != "" {
		t.Errorf("-want, +got what is left in the bucket:\n%s", diff)
	}
}

// TestOrphan is about policies without Delete.
func TestOrphan(t *testing.T) {
	b := newBench(t, servers.SharedS3(t))
	b.apply()
	b.settle()
	b.change(func(cr *v1alpha1.Bucket) {
		cr.Spec.ManagementPolicies = xpv2.ManagementPolicies{"Observe", "Create", "Update"}
	})
	b.settle()
	b.remove()
	if !b.gone() || !b.there(b.named()) {
		t.Errorf("the Bucket is gone: %t, its bucket is there: %t; want both", b.gone(), b.there(b.named()))
	}
}

// TestGone is about a bucket that somebody else deletes.
func TestGone(t *testing.T) {
	b := newBench(t, servers.SharedS3(t))
	b.apply(version)
	b.settle()
	if _, err := b.s3.DeleteBucket(t.Context(), &awss3.DeleteBucketInput{Bucket: aws.String(b.named())}); err != nil {
		t.Fatal(err)
	}
	b.settle()
	if !b.there(b.named()) || !b.isReady() {
		t.Errorf("the bucket is there: %t, the Bucket is ready: %t; want both again", b.there(b.named()), b.isReady())
	}
	if _, err := b.s3.DeleteBucket(t.Context(), &awss3.DeleteBucketInput{Bucket: aws.String(b.named())}); err != nil {
		t.Fatal(err)
	}
	b.remove()
	b.settle()
}

// TestManyVersions is about a number that is too large to be counted.
func TestManyVersions(t *testing.T) {
	b := newBench(t, servers.SharedS3(t))
	b.apply()
	b.settle()
	b.remove()
	page := &strings.Builder{}
	page.WriteString(`<?xml version="1.0" encoding="UTF-8"?><ListVersionsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">` +
		`<IsTruncated>true</IsTruncated><NextKeyMarker>%s</NextKeyMarker>`)
	for range 1000 {
		page.WriteString(`<Version><Key>k</Key><VersionId>v</VersionId><IsLatest>false</IsLatest></Version>`)
	}
	page.WriteString(`</ListVersionsResult>`)
	for i := range 20 {
		b.proxy.Fail(servers.Call("GET /"+b.named()+"?versions"), servers.Answer(200, fmt.Sprintf(page.String(), strconv.Itoa(i))).Times(1))
	}
	b.reconcile()
	if got := b.connected(); !strings.Contains(got, "holds more than 10,000 objects, old versions and uploads") {
		t.Errorf("Connected is %q", got)
	}
	if n := len(slices.DeleteFunc(b.proxy.Requests(), func(r string) bool { return !strings.Contains(r, "?") || !strings.Contains(r, "&versions") })); n != 10 {
		t.Errorf("10,000 versions were counted with %d requests, want 10", n)
	}
}

// TestDeleteWithoutVersions is about a server that has no versions: what is in a bucket is listed otherwise.
func TestDeleteWithoutVersions(t *testing.T) {
	b := newBench(t, servers.SharedS3(t))
	b.proxy.Fail(servers.Call("GET /"+b.named()+"?versions"), servers.S3Error(501, "NotImplemented", "Not implemented."))
	b.proxy.Fail(servers.Call("GET /"+b.named()+"?uploads"), servers.S3Error(501, "NotImplemented", "Not implemented."))
	b.proxy.Fail(servers.Call("POST /"+b.named()+"?delete"), servers.S3Error(501, "NotImplemented", "Not implemented."))
	b.apply()
	b.settle()
	b.put(b.named(), "a")
	b.put(b.named(), "b c")
	b.remove()
	b.reconcile()
	if got := b.connected(); !strings.Contains(got, "holds 2 objects:") {
		t.Errorf("Connected is %q", got)
	}
	b.change(force)
	b.settle()
	if b.there(b.named()) {
		t.Error("the bucket is left, although it may be destroyed")
	}
}

// SPDX-License-Identifier: Apache-2.0

//go:build integration

package provider

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
)

// TestCrashes kills the provider repeatedly while it creates buckets, models and versions. At the end all of them are
// ready, and the servers have exactly the desired state.
func TestCrashes(t *testing.T) {
	t.Parallel()

	const kills = 20

	n := scale(100)
	b := newBench(t)
	s := b.outside()

	all := make([]resource.Managed, 0, 3*n)
	for i := range n {
		all = append(all,
			bucket("shop", fmt.Sprintf("assets-%03d", i)),
			model("shop", fmt.Sprintf("model-%03d", i)),
			version("shop", fmt.Sprintf("version-%03d", i), fmt.Sprintf("model-%03d", i)))
	}

	each(len(all), func(i int) { b.apply(all[i]) })

	killed := 0

	for ; killed < kills; killed++ {
		p := b.start()
		time.Sleep(time.Second + rand.N(2*time.Second))
		p.kill()

		if waiting(b, all) == "" {
			break
		}
	}

	if killed < kills/2 {
		t.Errorf("Everything was ready after %d kills: the test kills too seldom to prove anything", killed)
	}

	b.start()

	began := time.Now()
	b.becomeReady(5*time.Minute, all...)
	t.Logf("%d objects ready after %d kills, %s after the last", len(all), killed, time.Since(began).Round(time.Second))

	if got := buckets(t, s); got != n {
		t.Errorf("The server holds %d buckets, want %d", got, n)
	}

	if got := versions(t, s); got != n {
		t.Errorf("The registry holds %d versions, want %d", got, n)
	}

	made := 0

	for _, r := range s.toMLflow.Requests() {
		if strings.HasPrefix(r, "POST ") && strings.HasSuffix(r, "/model-versions/create") {
			made++
		}
	}

	t.Logf("%d requests to create a version", made)
}

// waiting lists what is not ready yet.
func waiting(b *bench, all []resource.Managed) string {
	for _, mg := range all {
		b.get(mg)

		if said := ready(mg); said != "" {
			return said
		}
	}

	return ""
}

// buckets on the server that begin with the namespace's prefix.
func buckets(t *testing.T, s *servers) int {
	t.Helper()

	c, err := s.s3.Client().ListBuckets(t.Context(), &awss3.ListBucketsInput{})
	if err != nil {
		t.Fatal(err)
	}

	found := 0

	for _, b := range c.Buckets {
		if strings.HasPrefix(*b.Name, "shop-") {
			found++
		}
	}

	return found
}

// versions in the registry.
func versions(t *testing.T, s *servers) int {
	t.Helper()

	status, body := s.mlflow.Call(http.MethodGet, "model-versions/search?max_results=10000", nil)
	if status != http.StatusOK {
		t.Fatalf("cannot search versions: %d %s", status, body)
	}

	var found struct {
		Versions []struct{} `json:"model_versions"`
	}

	if err := json.Unmarshal([]byte(body), &found); err != nil {
		t.Fatal(err)
	}

	return len(found.Versions)
}

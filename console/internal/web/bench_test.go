// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// BenchmarkList makes the page of a namespace with 500 Databases. Most of it is the JSON of the API server.
func BenchmarkList(b *testing.B) {
	r := newRig(b)
	items := make([]any, 0, 500)
	for i := range cap(items) {
		d := database1(fmt.Sprintf("orders-%d", i))
		d.Status.Members = make([]v1alpha1.MemberStatus, 3)
		items = append(items, d)
	}
	r.api.objects["/apis/capstan.dev/v1alpha1/namespaces/shop/databases"] = map[string]any{"apiVersion": "capstan.dev/v1alpha1", "kind": "DatabaseList", "items": items}
	r.logIn("alices")
	for b.Loop() {
		if code, _ := r.get("/n/shop"); code != http.StatusOK {
			b.Fatal(code)
		}
	}
}

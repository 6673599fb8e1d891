// SPDX-License-Identifier: Apache-2.0

package content

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

func TestContent(t *testing.T) {
	cases := map[string]struct {
		content Count
		want    string
	}{
		"One":  {content: Count{objects: 1}, want: "1 object"},
		"All":  {content: Count{objects: 12, old: 3, markers: 2, uploads: 1}, want: "12 objects, 3 old versions, 2 delete markers, 1 unfinished upload"},
		"Many": {content: Count{objects: 9999, old: 1000}, want: "9,999 objects, 1,000 old versions"},
		"More": {content: Count{objects: 10000, more: true}, want: "more than 10,000 objects, old versions and uploads"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.content.String(); got != tc.want {
				t.Errorf("String(): want %q, got %q", tc.want, got)
			}
		})
	}
}

func TestInXML(t *testing.T) {
	for key, want := range map[string]bool{"a b": true, "ü/😀": true, "a\nb": false, "a\x01": false, "\uFFFE": false, "": true} {
		if got := inXML(key); got != want {
			t.Errorf("inXML(%q): want %t, got %t", key, want, got)
		}
	}
	if got := decoded(aws.String("a+b%2Bc%0A"), types.EncodingTypeUrl); got != "a b+c\n" {
		t.Errorf("decoded(...): got %q", got)
	}
	if got := decoded(aws.String("a+b%2B"), ""); got != "a+b%2B" {
		t.Errorf("what a server has not encoded is decoded: %q", got)
	}
}

func TestLate(t *testing.T) {
	ctx := t.Context()
	if late(ctx) {
		t.Error("without an end it is never late")
	}
	short, cancel := context.WithTimeout(ctx, Reserve-time.Second)
	defer cancel()
	if !late(short) {
		t.Error("too little is left, and it is not late")
	}
}

// SPDX-License-Identifier: Apache-2.0

package s3options_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/capstan-dev/capstan/internal/s3options"
)

// TestWrongDate is about a server that says that it is another time. Its answers change no time that requests are signed with.
func TestWrongDate(t *testing.T) {
	for reason, wrong := range map[string]time.Duration{
		"The clock of the server is behind, or a proxy answers from a cache.": -2 * time.Hour,
		"The clock of the server is ahead.":                                   2 * time.Hour,
	} {
		var signed []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			signed = append(signed, r.Header.Get("X-Amz-Date"))
			w.Header().Set("Date", time.Now().Add(wrong).UTC().Format(http.TimeFormat))
		}))
		defer server.Close()
		client := s3.New(s3.Options{
			BaseEndpoint: aws.String(server.URL), UsePathStyle: true, Region: "x", Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""),
		}, s3options.AnyMake)
		for range 3 {
			if _, err := client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String("b"), Key: aws.String("k")}); err != nil {
				t.Fatal(err)
			}
		}
		for _, text := range signed {
			at, err := time.Parse("20060102T150405Z", text)
			if err != nil || time.Since(at).Abs() > time.Minute {
				t.Errorf("%s A request was signed at %q, %v", reason, text, err)
			}
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package mlflow

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// Bodies as MLflow 3.5.1 and what stands before it wrote them.
const (
	bodyNotFound = `{"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "Registered Model with name=nope not found"}`
	bodyExists   = `{"error_code": "RESOURCE_ALREADY_EXISTS", "message": "Registered Model (name=a b) already exists."}`
	bodyAlias    = `{"error_code": "INVALID_PARAMETER_VALUE", "message": "Registered model alias champion not found."}`
	bodyLogin    = "You are not authenticated. Please see https://www.mlflow.org/docs/latest/auth/index.html#authenticating-to-mlflow on how to authenticate."
	bodyDenied   = "Permission denied"
	bodyHost     = "Invalid Host header - possible DNS rebinding attack detected"
	bodyPage     = "<!doctype html>\n<html lang=en>\n<title>404 Not Found</title>\n<h1>Not Found</h1>\n"
	bodyNginx    = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n</html>\r\n"
	bodyCode     = `{"error_code": "%s", "message": "secret words"}`
)

func TestExplain(t *testing.T) {
	code := func(c string) string { return fmt.Sprintf(bodyCode, c) }
	cases := map[string]struct {
		reason   string
		status   int
		body     string
		want     xpv2.ConditionReason
		says     string
		notFound bool
	}{
		"NotFound":      {reason: "Only this says that something does not exist.", status: 404, body: bodyNotFound, want: v1alpha1.ReasonNotFound, notFound: true},
		"Exists":        {reason: "The status is 400 and not 409.", status: 400, body: bodyExists, want: v1alpha1.ReasonConflict},
		"ExistsToo":     {reason: "Other servers have another code.", status: 409, body: code("ALREADY_EXISTS"), want: v1alpha1.ReasonConflict},
		"NoAlias":       {reason: "A missing alias is 400; we never ask for one.", status: 400, body: bodyAlias, want: v1alpha1.ReasonRejected},
		"Bad":           {reason: "A bad request.", status: 400, body: code("BAD_REQUEST"), want: v1alpha1.ReasonRejected, says: "BAD_REQUEST"},
		"Login":         {reason: "The server's own 401 is plain text.", status: 401, body: bodyLogin, want: v1alpha1.ReasonCredentialsRefused, says: "Secret"},
		"LoginCode":     {reason: "Others have a code.", status: 401, body: code("UNAUTHENTICATED"), want: v1alpha1.ReasonCredentialsRefused},
		"Customer":      {reason: "Others have a code.", status: 401, body: code("CUSTOMER_UNAUTHORIZED"), want: v1alpha1.ReasonCredentialsRefused},
		"Denied":        {reason: "The server's own 403 is plain text.", status: 403, body: bodyDenied, want: v1alpha1.ReasonForbidden, says: "permission"},
		"DeniedCode":    {reason: "Others have a code.", status: 403, body: code("PERMISSION_DENIED"), want: v1alpha1.ReasonForbidden},
		"DeniedPage":    {reason: "A proxy refuses, too.", status: 403, body: bodyPage, want: v1alpha1.ReasonForbidden, says: "proxies"},
		"Host":          {reason: "The server does not want this host name.", status: 403, body: bodyHost, want: v1alpha1.ReasonHostRefused, says: "--allowed-hosts"},
		"HostElsewhere": {reason: "The same words with another status are not it.", status: 400, body: bodyHost, want: v1alpha1.ReasonUnknownAnswer},
		"Page":          {reason: "A page that is not found says nothing about models.", status: 404, body: bodyPage, want: v1alpha1.ReasonUnknownAnswer},
		"Empty":         {reason: "Neither does an empty answer.", status: 404, want: v1alpha1.ReasonUnknownAnswer},
		"OtherCode":     {reason: "Neither does a code that we do not know.", status: 404, body: code("NOT_FOUND"), want: v1alpha1.ReasonUnknownAnswer},
		"NoEndpoint":    {reason: "The server lacks the call.", status: 404, body: code("ENDPOINT_NOT_FOUND"), want: v1alpha1.ReasonNotImplemented},
		"Unimplemented": {reason: "The server lacks the call.", status: 501, body: code("NOT_IMPLEMENTED"), want: v1alpha1.ReasonNotImplemented},
		"Odd":           {reason: "A server's error is never not found.", status: 500, body: bodyNotFound, want: v1alpha1.ReasonServerError},
		"NotJSON":       {reason: "The code counts in JSON only.", status: 404, body: "RESOURCE_DOES_NOT_EXIST", want: v1alpha1.ReasonUnknownAnswer},
		"HalfJSON":      {reason: "And only in whole JSON.", status: 404, body: bodyNotFound[:60], want: v1alpha1.ReasonUnknownAnswer},
		"TwoAnswers":    {reason: "And in one answer.", status: 404, body: bodyNotFound + bodyNotFound, want: v1alpha1.ReasonUnknownAnswer},
		"List":          {reason: "A list is no error.", status: 404, body: "[" + bodyNotFound + "]", want: v1alpha1.ReasonUnknownAnswer},
		"Aborted":       {reason: "Somebody was quicker.", status: 409, body: code("ABORTED"), want: v1alpha1.ReasonConflict},
		"Conflict":      {reason: "Somebody was quicker.", status: 409, body: code("RESOURCE_CONFLICT"), want: v1alpha1.ReasonConflict},
		"Limit":         {reason: "Too many requests.", status: 429, body: code("REQUEST_LIMIT_EXCEEDED"), want: v1alpha1.ReasonThrottled},
		"Exhausted":     {reason: "Too many requests.", status: 429, body: code("RESOURCE_EXHAUSTED"), want: v1alpha1.ReasonThrottled},
		"LimitPage":     {reason: "Too many requests, says a proxy.", status: 429, body: bodyPage, want: v1alpha1.ReasonThrottled},
		"TimedOut":      {reason: "A proxy did not wait.", status: 408, want: v1alpha1.ReasonTimedOut},
		"TooLarge":      {reason: "A proxy takes small requests only.", status: 413, body: bodyPage, want: v1alpha1.ReasonRejected, says: "proxy"},
		"Internal":      {reason: "The server failed.", status: 500, body: code("INTERNAL_ERROR"), want: v1alpha1.ReasonServerError, says: "500"},
		"Temporary":     {reason: "The server failed.", status: 503, body: code("TEMPORARILY_UNAVAILABLE"), want: v1alpha1.ReasonServerError},
		"Gateway":       {reason: "A proxy found nobody.", status: 502, body: bodyNginx, want: v1alpha1.ReasonServerError, says: "502"},
		"Redirect":      {reason: "We follow nobody.", status: 302, body: bodyPage, want: v1alpha1.ReasonUnknownAnswer, says: "another URL"},
		"Created":       {reason: "The registry's good answers are 200.", status: 201, body: "{}", want: v1alpha1.ReasonUnknownAnswer, says: "201"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := fmt.Errorf("somewhere: %w", newError("GetRegisteredModel", tc.status, []byte(tc.body)))
			f := Explain(err)
			if f == nil || f.Reason != tc.want || !strings.Contains(f.Error(), tc.says) || f.Remedy == "" {
				t.Fatalf("\n%s\nExplain(...): want %s with %q and a remedy, got %v", tc.reason, tc.want, tc.says, f)
			}
			if strings.Contains(f.Error()+err.Error(), "secret words") || strings.Contains(f.Error(), "nope") {
				t.Errorf("\n%s\nExplain(...): must not repeat what the answer says, got %q", tc.reason, f.Error())
			}
			if !errors.Is(f, err) {
				t.Errorf("\n%s\nExplain(...): must keep the cause", tc.reason)
			}
			if got := IsNotFound(err); got != tc.notFound {
				t.Errorf("\n%s\nIsNotFound(...): want %t, got %t", tc.reason, tc.notFound, got)
			}
		})
	}
	if f := Explain(errors.New("boom")); f != nil {
		t.Errorf("What is not about an answer is not ours to explain, got %v", f)
	}
}

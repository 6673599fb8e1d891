// SPDX-License-Identifier: Apache-2.0

//go:build integration

package provider

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// hookTo a URL, of bank.
func (s *stage) hookTo(url, secret string) *observev1alpha1.Hook {
	h := &observev1alpha1.Hook{ObjectMeta: meta("bank", s.name())}
	h.Spec.ForProvider = observev1alpha1.HookParameters{URL: url, SecretName: secret, Requests: []observev1alpha1.HookRequest{{
		Key: "a", Body: "{}", Until: metav1.NewTime(time.Now().Add(3 * time.Second)),
	}}}

	return h
}

// fails waits for the result of a Hook, which must not have passed, with words of its message.
func (s *stage) fails(t *testing.T, h *observev1alpha1.Hook, words string) {
	t.Helper()
	s.apply(h)
	s.eventually(time.Minute, h.Spec.ForProvider.URL+" being refused", func() string {
		s.get(h)

		rs := h.Status.AtProvider.Results
		if len(rs) != 1 || rs[0].Result == observev1alpha1.HookPassed || !strings.Contains(rs[0].Message, words) {
			return "there is no such result"
		}

		return ""
	})
}

// hookURLs that a tenant must not reach.
func hookURLs(t *testing.T, s *stage) {
	t.Helper()

	var asked atomic.Int32

	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer trap.Close()

	_, port, _ := net.SplitHostPort(strings.TrimPrefix(trap.URL, "http://"))
	_, api, _ := net.SplitHostPort(strings.Trim(strings.TrimPrefix(s.cfg.Host, "https://"), "/"))

	for _, url := range []string{
		"http://127.0.0.1:" + port, "http://localhost:" + port, "http://[::1]:" + port, "http://[::ffff:127.0.0.1]:" + port, "http://0.0.0.0:" + port,
		"http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/", "http://100.100.100.200/", "https://127.0.0.1:" + api,
		"http://10.1.2.3/", "http://192.168.1.2:10255/", "http://[fd12::1]/",
	} {
		s.fails(t, s.hookTo(url, ""), "must not reach")
	}

	if n := asked.Load(); n != 0 {
		t.Errorf("want no request, got %d", n)
	}

	for _, url := range []string{
		"file:///etc/passwd", "gopher://example.org", "https://user:password@example.org", "https://", "example.org", "https://example.org\r\nX: y",
	} {
		s.refused(t, url, s.hookTo(url, ""))
	}
}

// othersHookSecret is of another namespace.
func othersHookSecret(t *testing.T, s *stage) {
	t.Helper()
	s.fails(t, s.hookTo("https://203.0.113.1", "precious"), "does not exist")

	for _, name := range []string{"shop/precious", "../shop/precious", "..", "precious\n"} {
		s.refused(t, name, s.hookTo("https://203.0.113.1", name))
	}
}

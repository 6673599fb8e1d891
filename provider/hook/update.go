// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// Headers of a request.
const (
	headerKey       = "Idempotency-Key"
	headerSignature = "Capstan-Signature"
)

// service that requests go to, in metrics.
const service outside.Backend = "hook"

// An answer to a request.
type answer struct {
	outcome v1alpha1.HookOutcome
	message string

	// again reports whether another try may have another answer.
	again bool
}

// Update sends the next request. One that may have another answer later is an error until its time is over: the queue tries again,
// ever more seldom. What is late is sent once.
func (s *sender) Update(ctx context.Context, cr *v1alpha1.Hook) (managed.ExternalUpdate, error) {
	r := next(cr)
	if r == nil {
		return managed.ExternalUpdate{}, nil
	}
	a, err := s.send(ctx, cr, r)
	switch {
	case err != nil:
		return managed.ExternalUpdate{}, err
	case a.again && s.now().Before(r.Until.Time):
		return managed.ExternalUpdate{}, fmt.Errorf("cannot complete request %s: %s", r.Key, a.message)
	case a.again:
		a.message += ", and its time is over"
	}
	remember(cr, v1alpha1.HookRequestResult{Key: r.Key, Result: a.outcome, Message: a.message, At: metav1.NewTime(s.now().UTC())})
	return managed.ExternalUpdate{}, nil
}

// send a request. It errs when the cluster does not answer.
func (s *sender) send(ctx context.Context, cr *v1alpha1.Hook, r *v1alpha1.HookRequest) (answer, error) {
	secret, missing, err := s.secret(ctx, cr)
	if err != nil || missing != nil {
		return *orNothing(missing), err
	}
	target := cr.Spec.ForProvider.URL
	if target == "" {
		target = secret[v1alpha1.HookKeyURL]
	}
	if !valid(target) {
		return answer{outcome: v1alpha1.HookRefused, again: true, message: fmt.Sprintf(
			"key url of Secret %q is no http or https URL without a user: correct it", cr.Spec.ForProvider.SecretName)}, nil
	}
	client, err := outside.NewHTTPClient(service, cr.GetNamespace(), secret[v1alpha1.HookKeyCA], s.guard)
	if err != nil {
		return answer{outcome: v1alpha1.HookRefused, again: true, message: fmt.Sprintf(
			"key ca.crt of Secret %q has no certificate: correct it", cr.Spec.ForProvider.SecretName)}, nil
	}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader(r.Body))
	if err != nil {
		return answer{outcome: v1alpha1.HookRefused, message: "the URL cannot be used: correct it"}, nil
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "capstan")
	req.Header.Set(headerKey, r.Key)
	if token := secret[v1alpha1.HookKeyToken]; token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if key := secret[v1alpha1.HookKeySigning]; key != "" {
		req.Header.Set(headerSignature, signature(key, r.Body))
	}
	res, err := client.Do(req)
	if err != nil {
		return unanswered(err), nil
	}
	_ = res.Body.Close() // Nothing of it is reported.
	return answered(res.StatusCode), nil
}

func orNothing(a *answer) *answer {
	if a == nil {
		return &answer{}
	}
	return a
}

// valid reports whether a text is a URL that requests can go to.
func valid(target string) bool {
	u, err := url.Parse(target)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
}

// secret of the Hook, or an answer when it does not exist.
func (s *sender) secret(ctx context.Context, cr *v1alpha1.Hook) (map[string]string, *answer, error) {
	name := cr.Spec.ForProvider.SecretName
	if name == "" {
		return nil, nil, nil
	}
	o := &corev1.Secret{}
	err := s.kube.Get(ctx, types.NamespacedName{Namespace: cr.GetNamespace(), Name: name}, o)
	switch {
	case kerrors.IsNotFound(err):
		return nil, &answer{outcome: v1alpha1.HookRefused, again: true, message: fmt.Sprintf("Secret %q does not exist: create it", name)}, nil
	case err != nil:
		return nil, nil, fmt.Errorf("cannot get Secret %q: %w", name, err)
	}
	values := map[string]string{}
	for _, key := range []string{v1alpha1.HookKeyURL, v1alpha1.HookKeyToken, v1alpha1.HookKeySigning, v1alpha1.HookKeyCA} {
		// Editors and echo leave a line break at the end, which no header takes.
		values[key] = strings.TrimRight(string(o.Data[key]), "\r\n")
	}
	return values, nil, nil
}

// signature of a body: it shows to a receiver with the key that Capstan sent the body, and that it is unchanged.
func signature(key, body string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// unanswered request. An address that is refused stays so.
func unanswered(err error) answer {
	if e := (*outside.AddressError)(nil); errors.As(err, &e) {
		return answer{outcome: v1alpha1.HookRefused, message: fmt.Sprintf(
			"the URL leads to %s, which hooks must not reach: use another address, or ask the platform team to allow it (--allow-tenant-host or --allow-tenant-cidr of the provider)", e.Kind)}
	}
	message := "there was no response"
	if f := outside.Explain(err); f != nil {
		message = f.Message
	}
	return answer{outcome: v1alpha1.HookUnreachable, again: true, message: message}
}

// answered request, by its status.
func answered(status int) answer {
	switch {
	case status >= 200 && status < 300:
		return answer{outcome: v1alpha1.HookPassed}
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests, status >= 500:
		return answer{outcome: v1alpha1.HookRefused, again: true, message: fmt.Sprintf("the URL responded with status %d", status)}
	case status >= 300 && status < 400:
		return answer{outcome: v1alpha1.HookRefused, message: fmt.Sprintf("the URL responded with status %d, and redirects are not followed", status)}
	default:
		return answer{outcome: v1alpha1.HookRefused, message: fmt.Sprintf("the URL responded with status %d", status)}
	}
}

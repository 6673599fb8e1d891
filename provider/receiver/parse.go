// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/binding"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/capstan-dev/capstan/apis/events/v1alpha1"
)

// maxAlerts of one request.
const maxAlerts = 100

// An occurrence is an alert or an event.
type occurrence struct {
	// key is the same for each repetition of an alert, also after it was resolved. occasion is the same only until it is resolved.
	key, occasion string

	// values that rules match.
	values map[string]string

	// resolved reports whether an alert is over. isEvent reports whether it is an event, which never is, and whose repetition says nothing more.
	resolved, isEvent bool

	// reason for people.
	reason string
}

// parse a request.
func parse(ctx context.Context, f v1alpha1.Format, h http.Header, body []byte) ([]occurrence, error) {
	if f == v1alpha1.FormatCloudEvents {
		return parseEvent(ctx, h, body)
	}
	return parseAlerts(body)
}

// An alertmanagerMessage is what the webhook of Alertmanager sends, and Grafana's. Other fields are not read.
type alertmanagerMessage struct {
	Alerts []struct {
		Status      string            `json:"status"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
		StartsAt    time.Time         `json:"startsAt"`
	} `json:"alerts"`
}

func parseAlerts(body []byte) ([]occurrence, error) {
	m := &alertmanagerMessage{}
	if err := json.Unmarshal(body, m); err != nil {
		return nil, fmt.Errorf("the body is no message of Alertmanager: %w", err)
	}
	if len(m.Alerts) > maxAlerts {
		return nil, fmt.Errorf("the message has %d alerts, at most %d are taken: set max_alerts", len(m.Alerts), maxAlerts)
	}
	all := make([]occurrence, 0, len(m.Alerts))
	for i, a := range m.Alerts {
		if a.Status != "firing" && a.Status != "resolved" {
			return nil, fmt.Errorf("alert %d has the status %q, want firing or resolved", i, a.Status)
		}
		name := a.Labels["alertname"]
		reason := strings.Trim(name+": "+firstOf(a.Annotations, "summary", "description", "message"), ": ")
		key := identity(a.Labels)
		all = append(all, occurrence{
			key: key, occasion: key + " " + a.StartsAt.UTC().Format(time.RFC3339Nano), values: a.Labels, resolved: a.Status == "resolved", reason: reason,
		})
	}
	return all, nil
}

func firstOf(m map[string]string, keys ...string) string {
	for _, k := range keys {
		if m[k] != "" {
			return m[k]
		}
	}
	return ""
}

// identity of labels. The fingerprint of a message is not used: what a sender computes need not be unique.
func identity(labels map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&b, "%q=%q,", k, labels[k])
	}
	return b.String()
}

func parseEvent(ctx context.Context, h http.Header, body []byte) ([]occurrence, error) {
	m := cehttp.NewMessage(h, io.NopCloser(bytes.NewReader(body)))
	defer func() { _ = m.Finish(nil) }()
	if m.ReadEncoding() == binding.EncodingUnknown {
		return nil, errors.New("the request is no CloudEvent: it needs the headers ce-id, ce-source, ce-type and ce-specversion, or the content type application/cloudevents+json")
	}
	e, err := binding.ToEvent(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("the request is no CloudEvent: %w", err)
	}
	if err := e.Validate(); err != nil {
		return nil, fmt.Errorf("the event is invalid: %w", err)
	}
	values := map[string]string{"id": e.ID(), "source": e.Source(), "type": e.Type(), "subject": e.Subject()}
	for k, v := range e.Extensions() {
		values[k] = fmt.Sprint(v)
	}
	key := fmt.Sprintf("%q %q", e.Source(), e.ID())
	return []occurrence{{key: key, occasion: key, isEvent: true, values: values, reason: strings.TrimSpace(e.Type() + " " + e.Subject())}}, nil
}

// SPDX-License-Identifier: Apache-2.0

// Package rest asks the JobManager in the same pod about its job, by the part of Flink's REST API that a companion needs.
package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	timeout = 5 * time.Second
	// most bytes of an answer.
	most = 8 << 20
)

// A Client of one job.
type Client struct {
	base string
	job  string
	http *http.Client
}

// New client for a job of the JobManager at a URL.
func New(base, job string) *Client {
	return &Client{base: base, job: job, http: &http.Client{Timeout: timeout, Transport: &http.Transport{Proxy: nil, MaxIdleConnsPerHost: 2}}}
}

// ErrNoJob reports that the JobManager answers and does not have the job, at least not yet.
var ErrNoJob = errors.New("the job does not exist")

// JobState is Flink's state of a job.
type JobState string

// States of a job.
const (
	Running    JobState = "RUNNING"
	Finished   JobState = "FINISHED"
	Canceled   JobState = "CANCELED"
	Failed     JobState = "FAILED"
	Suspended  JobState = "SUSPENDED"
	Restarting JobState = "RESTARTING"
	Failing    JobState = "FAILING"
)

// Ended reports that the job will not run again.
func (s JobState) Ended() bool { return s == Finished || s == Canceled || s == Failed }

// Job as Flink shows it.
type Job struct {
	State    JobState `json:"state"`
	Vertices []Vertex `json:"vertices"`
}

// Vertex of a job: one or more operators in a chain.
type Vertex struct {
	ID          string         `json:"id"`
	Name        string         `json:"name"`
	Parallelism int            `json:"parallelism"`
	Status      string         `json:"status"`
	Tasks       map[string]int `json:"tasks"`
}

// AllRun reports that each task runs, or has ended in good order.
func (j Job) AllRun() bool {
	if j.State != Running || len(j.Vertices) == 0 {
		return false
	}
	for _, v := range j.Vertices {
		if v.Status != "RUNNING" && v.Status != "FINISHED" {
			return false
		}
		for state, n := range v.Tasks {
			if n > 0 && state != "RUNNING" && state != "FINISHED" {
				return false
			}
		}
	}
	return true
}

// Checkpoints of a job.
type Checkpoints struct {
	Counts struct {
		Completed int `json:"completed"`
		Failed    int `json:"failed"`
	} `json:"counts"`
	Latest struct {
		Completed *Checkpoint `json:"completed"`
		Failed    *Checkpoint `json:"failed"`
	} `json:"latest"`
}

// Checkpoint of a job.
type Checkpoint struct {
	ID             int64  `json:"id"`
	LatestAck      int64  `json:"latest_ack_timestamp"`
	TriggeredAt    int64  `json:"trigger_timestamp"`
	StateSize      int64  `json:"state_size"`
	EndToEndMillis int64  `json:"end_to_end_duration"`
	FailedAt       int64  `json:"failure_timestamp"`
	FailureMessage string `json:"failure_message"`
}

// Job asks for the job.
func (c *Client) Job(ctx context.Context) (Job, error) {
	var j Job
	return j, c.get(ctx, "/jobs/"+c.job, &j)
}

// Checkpoints asks for the checkpoints of the job.
func (c *Client) Checkpoints(ctx context.Context) (Checkpoints, error) {
	var k Checkpoints
	return k, c.get(ctx, "/jobs/"+c.job+"/checkpoints", &k)
}

// TaskManagers that are registered.
func (c *Client) TaskManagers(ctx context.Context) (int, error) {
	var o struct {
		TaskManagers int `json:"taskmanagers"`
	}
	return o.TaskManagers, c.get(ctx, "/overview", &o)
}

// Restarts asks how often the job restarted.
func (c *Client) Restarts(ctx context.Context) (int, error) {
	values, err := c.metrics(ctx, "/jobs/"+c.job+"/metrics", "numRestarts", "")
	if err != nil || len(values) == 0 {
		return 0, err
	}
	return int(values[0]), nil
}

// Exception is why tasks failed last. At is zero when none did.
func (c *Client) Exception(ctx context.Context) (at time.Time, message string, err error) {
	var e struct {
		History struct {
			Entries []struct {
				Timestamp  int64  `json:"timestamp"`
				Stacktrace string `json:"stacktrace"`
			} `json:"entries"`
		} `json:"exceptionHistory"`
	}
	if err := c.get(ctx, "/jobs/"+c.job+"/exceptions?maxExceptions=1", &e); err != nil || len(e.History.Entries) == 0 {
		return time.Time{}, "", err
	}
	last := e.History.Entries[0]
	return time.UnixMilli(last.Timestamp).UTC(), Cause(last.Stacktrace), nil
}

// Cause of a stack trace in one line: its first line, and the innermost cause.
func Cause(trace string) string {
	first, _, _ := strings.Cut(trace, "\n")
	last := ""
	for line := range strings.Lines(trace) {
		if cause, ok := strings.CutPrefix(strings.TrimSpace(line), "Caused by: "); ok {
			last = cause
		}
	}
	if last == "" || strings.Contains(first, last) {
		return strings.TrimSpace(first)
	}
	return strings.TrimSpace(first) + ": " + last
}

// Lag asks how many records the sources of the job have not read, as far as they report it; ok is false when none does.
func (c *Client) Lag(ctx context.Context, j Job) (lag int64, ok bool, err error) {
	for _, v := range j.Vertices {
		if !strings.Contains(v.Name, "Source:") {
			continue
		}
		values, err := c.metrics(ctx, "/jobs/"+c.job+"/vertices/"+v.ID+"/subtasks/metrics", "pendingRecords", "sum")
		if err != nil {
			return 0, false, err
		}
		for _, n := range values {
			lag, ok = lag+int64(n), true
		}
	}
	return lag, ok, nil
}

// metrics asks which metrics end with a name, and then for their values: operators put their own names first.
func (c *Client) metrics(ctx context.Context, path, suffix, aggregate string) ([]float64, error) {
	var names []struct {
		ID string `json:"id"`
	}
	if err := c.get(ctx, path, &names); err != nil {
		return nil, err
	}
	var wanted []string
	for _, n := range names {
		if n.ID == suffix || strings.HasSuffix(n.ID, "."+suffix) {
			wanted = append(wanted, n.ID)
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	query := url.Values{"get": {strings.Join(wanted, ",")}}
	if aggregate != "" {
		query.Set("agg", aggregate)
	}
	var found []struct {
		Value json.Number `json:"value"`
		Sum   json.Number `json:"sum"`
	}
	if err := c.get(ctx, path+"?"+query.Encode(), &found); err != nil {
		return nil, err
	}
	var values []float64
	for _, f := range found {
		raw := f.Value
		if raw == "" {
			raw = f.Sum
		}
		if n, err := raw.Float64(); err == nil {
			values = append(values, n)
		}
	}
	return values, nil
}

// Stop the job with a savepoint below a folder, and return the number of the request.
func (c *Client) Stop(ctx context.Context, dir string) (string, error) {
	var accepted struct {
		ID string `json:"request-id"`
	}
	body := map[string]any{"targetDirectory": dir, "drain": false, "formatType": "CANONICAL"}
	return accepted.ID, c.do(ctx, http.MethodPost, "/jobs/"+c.job+"/stop", body, &accepted)
}

// Savepoint asks how a savepoint is going. Done with an empty path means that it could not be taken, and why says the cause.
func (c *Client) Savepoint(ctx context.Context, id string) (done bool, path, why string, err error) {
	var s struct {
		Status struct {
			ID string `json:"id"`
		} `json:"status"`
		Operation struct {
			Location string `json:"location"`
			Failure  *struct {
				Stacktrace string `json:"stack-trace"`
			} `json:"failure-cause"`
		} `json:"operation"`
	}
	if err := c.get(ctx, "/jobs/"+c.job+"/savepoints/"+id, &s); err != nil {
		return false, "", "", err
	}
	if s.Operation.Failure != nil {
		why = Cause(s.Operation.Failure.Stacktrace)
	}
	return s.Status.ID == "COMPLETED", strings.TrimPrefix(s.Operation.Location, "file:"), why, nil
}

func (c *Client) get(ctx context.Context, path string, into any) error {
	return c.do(ctx, http.MethodGet, path, nil, into)
}

func (c *Client) do(ctx context.Context, method, path string, body, into any) error {
	var in io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("cannot ask Flink: %w", err)
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, in)
	if err != nil {
		return fmt.Errorf("cannot ask Flink: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("cannot ask Flink: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(res.Body, most))
	if err != nil {
		return fmt.Errorf("cannot ask Flink: %w", err)
	}
	switch {
	case res.StatusCode == http.StatusNotFound:
		return fmt.Errorf("cannot ask Flink for %s: %w", path, ErrNoJob)
	case res.StatusCode/100 != 2:
		return fmt.Errorf("cannot ask Flink for %s: %s: %s", path, res.Status, Cause(refused(raw)))
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("cannot understand what Flink answers to %s: %w", path, err)
	}
	return nil
}

// refused is what Flink says when it refuses.
func refused(raw []byte) string {
	var e struct {
		Errors []string `json:"errors"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return ""
	}
	return strings.Join(e.Errors, "\n")
}

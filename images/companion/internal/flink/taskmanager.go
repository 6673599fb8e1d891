// SPDX-License-Identifier: Apache-2.0

package flink

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/capstan-dev/capstan/apis/flink"
	"github.com/capstan-dev/capstan/images/companion/internal/process"
)

const (
	// hearWithin is how long a TaskManager that has to go waits for word that the JobManager has to go, too: an edit or a node that is
	// drained ends both, and the savepoint needs the TaskManager until it is complete.
	hearWithin = 5 * time.Second
	// askEvery is the time between two questions.
	askEvery = 200 * time.Millisecond
	// askTimeout of a question.
	askTimeout = 2 * time.Second
	// unheard is how many questions in a row may stay without an answer until the JobManager is gone.
	unheard  = 10
	maxState = 64 << 10
)

// RunTaskManager until the context ends, which is the request to go.
func RunTaskManager(ctx context.Context, c Config) error {
	c = c.withDefaults()
	keeper, err := process.NewKeeper()
	if err != nil {
		return err
	}
	var again pause
	for {
		cmd, err := c.taskManager()
		if err != nil {
			return err
		}
		java, err := start(keeper, cmd, c.Out)
		if err != nil {
			return fmt.Errorf("cannot start Java: %w", err)
		}
		select {
		case <-ctx.Done():
			c.linger(java)
			java.end(endWithin)
			return nil
		case <-java.Ended():
			java.end(0)
			c.Log.Error("the TaskManager ended, and is started again", "code", java.code())
			wait(ctx, again.after(time.Since(java.began)))
			if ctx.Err() != nil {
				return nil //nolint:nilerr // It was asked to end.
			}
		}
	}
}

// linger while the JobManager takes its last savepoint.
func (c Config) linger(java *child) {
	within := time.Duration(c.Plan.SavepointSeconds)*time.Second + hearWithin
	ctx, done := context.WithTimeout(context.Background(), within)
	defer done()
	client := &http.Client{Timeout: askTimeout, Transport: &http.Transport{Proxy: nil}}
	url := "http://" + net.JoinHostPort(c.Plan.JobManager, strconv.Itoa(flink.StatePort)) + flink.StatePath
	began, stopping, silent := time.Now(), false, 0
	for ctx.Err() == nil && !java.Gone() {
		s, err := ask(ctx, client, url)
		switch {
		case err != nil:
			silent++
		case s.Revision != c.Plan.Revision || s.Phase == flink.PhaseStopped:
			return
		default:
			silent, stopping = 0, stopping || s.Phase == flink.PhaseStopping
		}
		if silent >= unheard || !stopping && time.Since(began) > hearWithin {
			return
		}
		wait(ctx, askEvery)
	}
}

func ask(ctx context.Context, client *http.Client, url string) (flink.State, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return flink.State{}, err
	}
	res, err := client.Do(req)
	if err != nil {
		return flink.State{}, err
	}
	defer func() { _ = res.Body.Close() }()
	var s flink.State
	return s, json.NewDecoder(io.LimitReader(res.Body, maxState)).Decode(&s)
}

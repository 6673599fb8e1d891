// SPDX-License-Identifier: Apache-2.0

package double

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// shutdown is how long a JobManager still answers after its job has ended.
const shutdown = 500 * time.Millisecond

// jobManager runs a job until it ends.
func jobManager(ctx context.Context, conf map[string]string, out io.Writer, o options, id, from string) int {
	seconds, err := strconv.Atoi(strings.TrimSuffix(conf["execution.checkpointing.interval"], " s"))
	if err != nil || id == "" {
		_, _ = fmt.Fprintln(out, "want a job id, and a time between checkpoints in seconds")
		return 1
	}
	j := &job{
		options: o, out: out, id: id, checkpoints: strings.TrimPrefix(conf["execution.checkpointing.dir"], scheme), every: time.Duration(seconds) * time.Second,
		state: "CREATED", slots: map[int]int{}, savepoints: map[string]savepoint{}, done: make(chan struct{}),
	}
	if err := j.restore(from); err != nil {
		_, _ = fmt.Fprintln(out, err)
		return 1
	}
	rpc, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(conf["jobmanager.bind-host"], conf["jobmanager.rpc.port"]))
	if err != nil {
		_, _ = fmt.Fprintln(out, err)
		return 1
	}
	defer rpc.Close() //nolint:errcheck // The program ends.
	rest, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(conf["rest.bind-address"], conf["rest.bind-port"]))
	if err != nil {
		_, _ = fmt.Fprintln(out, err)
		return 1
	}
	server := &http.Server{Handler: j.handler(), ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(rest) }()
	defer server.Close() //nolint:errcheck // The program ends.
	go j.accept(rpc)
	go j.run()
	select {
	case <-ctx.Done():
		return 143
	case <-j.done:
		time.Sleep(shutdown)
		return 0
	}
}

// accept TaskManagers. Each counts for as long as it is connected.
func (j *job) accept(listener net.Listener) {
	for number := 0; ; number++ {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close() //nolint:errcheck // Nothing is written.
			lines := bufio.NewScanner(conn)
			if !lines.Scan() {
				return
			}
			slots, _ := strconv.Atoi(lines.Text())
			j.with(func() { j.slots[number] = slots; j.taskManagers++ })
			_, _ = io.Copy(io.Discard, conn)
			j.with(func() { delete(j.slots, number); j.taskManagers-- })
		}()
	}
}

func (j *job) with(change func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change()
}

// scheme of paths.
const scheme = "file://"

type fields = map[string]any

// handler is the part of the REST API that the companion uses.
func (j *job) handler() http.Handler {
	mux := http.NewServeMux()
	at := "/jobs/" + j.id
	answer := func(pattern string, respond func(r *http.Request) any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			j.mu.Lock()
			body := respond(r)
			j.mu.Unlock()
			if body == nil {
				w.WriteHeader(http.StatusNotFound)
				body = fields{"errors": []string{"not found"}}
			}
			_ = json.NewEncoder(w).Encode(body)
		})
	}
	answer("GET /overview", func(*http.Request) any { return fields{"taskmanagers": j.taskManagers} })
	answer("GET "+at, func(*http.Request) any {
		parallelism := 0
		for _, n := range j.slots {
			parallelism += n
		}
		return fields{"state": j.state, "vertices": []fields{{
			"id": "bc764cd8ddf7a0cff126f51c16239658", "name": "Source: numbers -> count", "parallelism": parallelism, "status": j.state,
			"tasks": fields{j.state: parallelism},
		}}}
	})
	answer("GET "+at+"/checkpoints", func(*http.Request) any {
		latest := fields{"completed": nil, "failed": nil}
		if n := len(j.taken); n > 0 && j.taken[n-1].dir != "" {
			c := j.taken[n-1]
			latest["completed"] = fields{"id": c.id, "latest_ack_timestamp": c.at.UnixMilli(), "state_size": 64, "end_to_end_duration": 3}
		}
		if j.failed != nil {
			latest["failed"] = fields{"id": j.failed.id, "failure_timestamp": j.failed.at.UnixMilli(), "failure_message": j.failed.why}
		}
		return fields{"counts": fields{"completed": len(j.taken)}, "latest": latest}
	})
	answer("GET "+at+"/metrics", func(r *http.Request) any {
		if r.URL.Query().Get("get") == "" {
			return []fields{{"id": "numRestarts"}}
		}
		return []fields{{"id": "numRestarts", "value": strconv.Itoa(j.restarts)}}
	})
	answer("GET "+at+"/vertices/{vertex}/subtasks/metrics", func(r *http.Request) any {
		if r.URL.Query().Get("get") == "" {
			return []fields{{"id": "Source__numbers.pendingRecords"}}
		}
		return []fields{{"id": "Source__numbers.pendingRecords", "sum": 7.0}}
	})
	answer("GET "+at+"/exceptions", func(*http.Request) any {
		entries := []fields{}
		if j.exception != "" {
			entries = append(entries, fields{"timestamp": j.exceptionAt.UnixMilli(), "stacktrace": j.exception + "\n\tat org.example.Task"})
		}
		return fields{"exceptionHistory": fields{"entries": entries}}
	})
	answer("GET "+at+"/savepoints/{request}", func(r *http.Request) any {
		s, ok := j.savepoints[r.PathValue("request")]
		if !ok {
			return nil
		}
		operation := fields{"location": s.location}
		if s.failure != "" {
			operation = fields{"failure-cause": fields{"stack-trace": s.failure}}
		}
		return fields{"status": fields{"id": "COMPLETED"}, "operation": operation}
	})
	mux.HandleFunc("POST "+at+"/stop", func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Target string `json:"targetDirectory"`
		}
		err := json.NewDecoder(r.Body).Decode(&body)
		j.mu.Lock()
		defer j.mu.Unlock()
		if err != nil || j.state != running {
			w.WriteHeader(http.StatusConflict)
			_ = json.NewEncoder(w).Encode(fields{"errors": []string{"the job does not run"}})
			return
		}
		w.WriteHeader(http.StatusAccepted)
		_ = json.NewEncoder(w).Encode(fields{"request-id": j.stop(strings.TrimPrefix(body.Target, scheme))})
	})
	return mux
}

// SPDX-License-Identifier: Apache-2.0

package load

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// A Report says what became of requests.
type Report struct {
	// Sent is the number of requests. Each was answered or failed.
	Sent int64 `json:"sent"`
	// Answered with success.
	Answered int64 `json:"answered"`
	// Failed requests, by what happened: "status 503", "timeout", "refused", "reset", or the words of the error.
	Failed map[string]int64 `json:"failed"`
	// Bursts of these, in the order of their beginning.
	Bursts []*Burst `json:"bursts,omitempty"`
	// Started is when the first request could be sent: what came before does not count.
	Started time.Time `json:"started"`
	// Versions that answered.
	Versions map[string]*Version `json:"versions"`
	// P50Ms, P95Ms and P99Ms are quantiles of the time that answers took, in milliseconds, to within 2%.
	P50Ms float64 `json:"p50Ms"`
	P95Ms float64 `json:"p95Ms"`
	P99Ms float64 `json:"p99Ms"`
	// FirstFailure and LastFailure are when the first and the last request that failed were sent.
	FirstFailure time.Time `json:"firstFailure,omitzero"`
	LastFailure  time.Time `json:"lastFailure,omitzero"`

	mu    sync.Mutex
	times times
	// open is the latest burst of each kind.
	open map[string]*Burst
}

// A Version answered.
type Version struct {
	// Answered requests.
	Answered int64 `json:"answered"`
	// First and Last are when the first and the last of them were sent.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// An outcome of a request.
type outcome struct {
	version string
	at      time.Time
	took    time.Duration
	err     error
}

func newReport() *Report {
	return &Report{Started: time.Now(), Failed: map[string]int64{}, Versions: map[string]*Version{}, open: map[string]*Burst{}}
}

// Lost is the number of requests that failed, for any reason.
func (r *Report) Lost() int64 { return r.Sent - r.Answered }

func (r *Report) count(o outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Sent++
	if o.err != nil {
		r.Failed[kind(o.err)]++
		r.burst(kind(o.err), o.at)
		if r.FirstFailure.IsZero() || o.at.Before(r.FirstFailure) {
			r.FirstFailure = o.at
		}
		if o.at.After(r.LastFailure) {
			r.LastFailure = o.at
		}
		return
	}
	r.Answered++
	r.times.add(o.took)
	v, ok := r.Versions[o.version]
	if !ok {
		v = &Version{First: o.at, Last: o.at}
		r.Versions[o.version] = v
	}
	v.Answered++
	// Clients report in the order of answers.
	if o.at.Before(v.First) {
		v.First = o.at
	}
	if o.at.After(v.Last) {
		v.Last = o.at
	}
}

func (r *Report) finish() {
	r.P50Ms, r.P95Ms, r.P99Ms = r.times.quantile(0.50), r.times.quantile(0.95), r.times.quantile(0.99)
	r.relate()
}

// statusError is an answer with this status.
type statusError int

func (e statusError) Error() string { return "status " + strconv.Itoa(int(e)) }

// kind of a failure, in words that are the same for every request that it happens to.
func kind(err error) string {
	var (
		status  statusError
		timeout net.Error
		dns     *net.DNSError
	)
	switch {
	case errors.As(err, &status):
		return status.Error()
	case errors.As(err, &dns):
		return "name not found"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "cut off"
	default:
		return fmt.Sprintf("%T: %v", err, err)
	}
}

// times is a histogram whose buckets are 2% wide, from a microsecond to about an hour, so that its size does not depend on how
// many requests there are.
type times struct {
	buckets [1100]int64
	total   int64
}

const width = 1.02

func (t *times) add(d time.Duration) {
	i := int(math.Log(math.Max(float64(d.Microseconds()), 1)) / math.Log(width))
	t.buckets[min(i, len(t.buckets)-1)]++
	t.total++
}

// quantile in milliseconds, or 0 when there is none.
func (t *times) quantile(q float64) float64 {
	rank := int64(math.Ceil(q * float64(t.total)))
	for i, n := range t.buckets {
		if rank -= n; rank <= 0 && n > 0 {
			// The upper bound of the bucket, to a microsecond.
			return math.Round(math.Pow(width, float64(i+1))) / 1000
		}
	}
	return 0
}

// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/capstan-dev/capstan/apis/events/v1alpha1"
)

// Bounds of what unknown senders can ask of this process.
const (
	maxBody       = 1 << 20
	perSecond     = 10 // requests of known senders to one Receiver
	burst         = 20
	maxConcurrent = 16
	readTimeout   = 10 * time.Second
	actTimeout    = 20 * time.Second
)

// A Server takes requests to Receivers: POST /v1/NAMESPACE/NAME. Every replica of the provider serves, because a Signal is the same from each of
// them.
type Server struct {
	// Address to listen on, such as :8082, and the folder of its certificate and key (tls.crt and tls.key). Without a folder it serves
	// HTTP.
	Address, CertificateDir string

	// Cache of Receivers, Signals, Analyses and pods, and Kube, which writes Signals and reads Secrets.
	Cache client.Reader
	Kube  client.Client

	Now func() time.Time
	Log logging.Logger

	mu     sync.Mutex
	limits map[types.NamespacedName]*rate.Limiter

	// read keys of Receivers, so that unknown senders cost no requests to the API server.
	read *cache.Expiring

	// once has the signatures of each namespace: no tenant can use up the room of another.
	once map[string]*signatures
}

// NeedLeaderElection is false: all replicas serve.
func (s *Server) NeedLeaderElection() bool { return false }

// Start serving until ctx ends.
func (s *Server) Start(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return fmt.Errorf("cannot receive events: %w", err)
	}
	if s.CertificateDir != "" {
		w, err := certwatcher.New(filepath.Join(s.CertificateDir, "tls.crt"), filepath.Join(s.CertificateDir, "tls.key"))
		if err != nil {
			return fmt.Errorf("cannot read the certificate for events: %w", err)
		}
		go func() {
			if err := w.Start(ctx); err != nil {
				s.Log.Info("Cannot follow changes of the certificate for events", "error", err)
			}
		}()
		l = tls.NewListener(l, &tls.Config{GetCertificate: w.GetCertificate, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}})
	}
	srv := &http.Server{
		Handler: s.Handler(), ReadTimeout: readTimeout, ReadHeaderTimeout: readTimeout, WriteTimeout: readTimeout + actTimeout,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() {
		graceful, cancel := context.WithTimeout(context.WithoutCancel(ctx), actTimeout)
		defer cancel()
		_ = srv.Shutdown(graceful)
	})
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot receive events: %w", err)
	}
	return nil
}

// Handler of requests.
func (s *Server) Handler() http.Handler {
	mux, slots := http.NewServeMux(), make(chan struct{}, maxConcurrent)
	mux.HandleFunc("POST /v1/{namespace}/{name}", func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			refuse(w, http.StatusServiceUnavailable, "busy: repeat the request later")
			return
		}
		s.receive(w, r)
	})
	return mux
}

// unauthorized is the same for a Receiver that does not exist, so that unknown senders learn no names.
const unauthorized = "the request has neither the token of this Receiver nor a valid signature"

func (s *Server) receive(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), actTimeout)
	defer cancel()
	of, cr := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}, &v1alpha1.Receiver{}
	if err := s.Cache.Get(ctx, of, cr); client.IgnoreNotFound(err) != nil {
		s.failed(w, of, err)
		return
	} else if err != nil {
		refuse(w, http.StatusUnauthorized, unauthorized)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		refuse(w, http.StatusRequestEntityTooLarge, "the body is larger than 1 MiB")
		return
	} else if err != nil {
		refuse(w, http.StatusBadRequest, "the body cannot be read")
		return
	}
	k, err := s.keysOf(ctx, cr)
	if err != nil {
		s.failed(w, of, err)
		return
	}
	switch k.authenticate(r.Header, body, s.Now(), s.signed(of.Namespace)) {
	case unknownSender:
		refuse(w, http.StatusUnauthorized, unauthorized)
	case repeated:
		refuse(w, http.StatusConflict, "this signed request was accepted before: sign a repetition with its own time")
	case knownSender:
		if !s.limit(of).Allow() {
			s.forget(of.Namespace, k, r.Header, body)
			w.Header().Set("Retry-After", "1")
			refuse(w, http.StatusTooManyRequests, fmt.Sprintf("more than %d requests a second: repeat the request later", perSecond))
			return
		}
		s.carryOut(ctx, w, r.Header, cr, k, body)
	}
}

// keysAge is how old the keys of a Receiver may be: as long as a former key may still be used.
const keysAge = 5 * time.Second

// keysOf a Receiver, which are read at most once in their age.
func (s *Server) keysOf(ctx context.Context, cr *v1alpha1.Receiver) (keys, error) {
	type version struct {
		uid    types.UID
		secret string
	}
	of := version{uid: cr.GetUID(), secret: cr.Spec.ForProvider.SecretName}
	s.mu.Lock()
	if s.read == nil {
		s.read = cache.NewExpiring()
	}
	s.mu.Unlock()
	if known, ok := s.read.Get(of); ok {
		if k, ok := known.(keys); ok {
			return k, nil
		}
	}
	k, _, err := readKeys(ctx, s.Kube, cr)
	if err != nil {
		return keys{}, err
	}
	s.read.Set(of, k, keysAge)
	return k, nil
}

// forget the signature of a request that was not carried out, so that its sender can repeat it.
func (s *Server) forget(namespace string, k keys, h http.Header, body []byte) {
	s.signed(namespace).forget(sign(k.signing, h.Get(headerTimestamp), body))
}

// carryOut a request of a known sender. It succeeds only after the API server has taken everything, so that senders repeat what it has not.
func (s *Server) carryOut(ctx context.Context, w http.ResponseWriter, h http.Header, cr *v1alpha1.Receiver, k keys, body []byte) {
	all, err := parse(ctx, cr.Spec.ForProvider.Format, h, body)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	names, failures := []string{}, []error(nil)
	for _, o := range all {
		made, failed := s.act(ctx, cr, o)
		names, failures = append(names, made...), append(failures, failed...)
	}
	if len(failures) == 0 {
		answer(w, http.StatusOK, map[string]any{"signals": names})
		return
	}
	s.forget(cr.GetNamespace(), k, h, body)
	if i := slices.IndexFunc(failures, func(err error) bool { return !errors.Is(err, errFull) }); i >= 0 {
		s.failed(w, client.ObjectKeyFromObject(cr), failures[i])
		return
	}
	refuse(w, http.StatusTooManyRequests, errFull.Error())
}

// failed request that is not the sender's fault. The cause is for the log: it may name what senders must not know.
func (s *Server) failed(w http.ResponseWriter, of types.NamespacedName, err error) {
	s.Log.Info("Cannot carry out an event", "receiver", of, "error", err)
	refuse(w, http.StatusServiceUnavailable, "the cluster cannot take it now: repeat the request later")
}

// maxLimits of Receivers: with more Receivers the limits start again.
const maxLimits = 10_000

// limit of the rate of requests to an existing Receiver.
func (s *Server) limit(of types.NamespacedName) *rate.Limiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limits == nil || len(s.limits) >= maxLimits {
		s.limits = map[types.NamespacedName]*rate.Limiter{}
	}
	l, ok := s.limits[of]
	if !ok {
		l = rate.NewLimiter(perSecond, burst)
		s.limits[of] = l
	}
	return l
}

// signed requests to Receivers of a namespace.
func (s *Server) signed(namespace string) *signatures {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.once == nil {
		s.once = map[string]*signatures{}
	}
	if s.once[namespace] == nil {
		s.once[namespace] = &signatures{}
	}
	return s.once[namespace]
}

func refuse(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]any{"error": message})
}

func answer(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	raw, err := json.Marshal(body)
	if err != nil {
		return // Texts and lists of texts can be marshalled.
	}
	_, _ = w.Write(raw) // The sender may have gone.
}

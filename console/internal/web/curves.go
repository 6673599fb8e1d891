// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/console/internal/kube"
	"github.com/capstan-dev/capstan/console/internal/view"
)

// Bounds of curves: they take Prometheus' time.
const (
	mostCurves, curvesAtOnce = 40, 2
	curvesTimeout            = 10 * time.Second
)

// Problems of curves. The page is whole without them.
var (
	errCurvesBusy = &kube.Problem{Title: "There are no curves now", Detail: "Too many are being drawn.", Status: http.StatusServiceUnavailable}
	errNoAnswer   = &kube.Problem{Title: "There are no curves now", Detail: "Prometheus does not answer.", Status: http.StatusServiceUnavailable}
)

// analyses are composed of Algorithms, and have their names.
var analyses = observev1alpha1.GroupVersion.WithResource("analyses")

// A drawing of what the checks of an Algorithm measured.
type drawing struct {
	view.Charts

	Problem *kube.Problem
	// Nothing is why there is nothing to draw.
	Nothing string
}

// measured reports whether an object may have curves.
func (s *Server) measured(c *call, u *unstructured.Unstructured) bool {
	if s.Curves == nil || c.kind.Name != "Algorithm" {
		return false
	}
	a, err := typed[algorithm](u)

	return err == nil && (a.Spec.Metrics != nil || a.Spec.Objectives != nil || a.Spec.Lifecycle != nil)
}

// curves are a part of the page of an Algorithm, which comes after it.
func (s *Server) curves(c *call) error {
	if s.Curves == nil || c.kind.Name != "Algorithm" {
		return errNotFound
	}
	d, err := s.draw(c)
	if err != nil {
		return err
	}
	c.w.Header().Set("X-Part", "curves")

	return s.render(c, http.StatusOK, "curves", d)
}

// draw the curves with the rights of the user. The result is of this request alone.
func (s *Server) draw(c *call) (*drawing, error) {
	ctx, cancel := context.WithTimeout(c.r.Context(), s.drawings.timeout)
	defer cancel()
	d, err := s.drawWith(ctx, c)
	switch {
	case kube.Ended(err):
		return nil, err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &drawing{Problem: errNoAnswer}, nil
	case err != nil:
		return &drawing{Problem: problemOf(err)}, nil
	default:
		return d, nil
	}
}

// drawWith the rights of the user, who has to have the right to read the Analysis. Of that only the questions count: the namespace and the
// Algorithm of the series are in the address of the page.
func (s *Server) drawWith(ctx context.Context, c *call) (*drawing, error) {
	u, err := c.client.Get(ctx, analyses, c.namespace, c.name)
	switch {
	case apierrors.IsNotFound(err):
		return &drawing{Nothing: "Nothing is measured yet."}, nil
	case err != nil:
		return nil, err //nolint:wrapcheck // It is for people already.
	}
	a, err := typed[observev1alpha1.Analysis](u)
	if err != nil {
		return nil, err
	}
	m, config := a.Spec.ForProvider.Metrics, a.Spec.ProviderConfigReference
	switch {
	case m == nil:
		return &drawing{Nothing: "Nothing is measured yet."}, nil
	case config != nil && config.Kind == "ProviderConfig":
		return &drawing{Nothing: "Its numbers are in the Prometheus of ProviderConfig " + config.Name + ", which the console does not use."}, nil
	}
	free, err := s.drawings.take(ctx, c.session.User)
	if err != nil {
		return nil, err
	}
	defer free()
	found, err := s.Curves.Of(ctx, c.namespace, c.name, m, c.now)
	if err != nil {
		if !errors.Is(ctx.Err(), context.Canceled) {
			s.Log.Warn("cannot draw curves", "namespace", c.namespace, "error", err)
		}

		return nil, errNoAnswer
	}
	if len(found.Checks) == 0 {
		return &drawing{Nothing: "No check of it has a bound."}, nil
	}

	return &drawing{Charts: view.ChartsOf(found)}, nil
}

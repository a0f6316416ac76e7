package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/http/pprof"
)

// maxRequestBytes bounds the body of a request.
const maxRequestBytes = 1 << 20

// Options say who may ask.
type Options struct {
	// Loopback is whether the listener is bound to loopback: then only loopback
	// names are answered to.
	Loopback bool
	// Token returns the token that requests must carry; nil: none is wanted.
	Token func() string
	Log   *slog.Logger
}

type handler struct {
	o       Options
	backend Backend
}

// New returns the admin API over the backend.
func New(backend Backend, o Options) http.Handler {
	h := &handler{o: o, backend: backend}
	mux := http.NewServeMux()
	route := func(method, path string, f func(r *http.Request) (any, error)) {
		mux.Handle(method+" "+path, h.answer(maxRequestBytes, f))
		mux.Handle(path, methodNotAllowed(method))
	}
	route("GET", "/v1/status", func(*http.Request) (any, error) { return h.backend.Status(), nil })
	route("GET", "/v1/explain", h.explain)
	route("GET", "/v1/entries", h.entries)
	route("GET", "/v1/top", h.top)
	mux.Handle("GET /v1/warm", h.answer(maxRequestBytes, h.warmJobs))
	mux.Handle("POST /v1/warm", h.answer(maxWarmBytes, h.warm))
	mux.Handle("/v1/warm", methodNotAllowed("GET, POST"))
	route("POST", "/v1/invalidate", h.invalidate)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, &Error{Status: http.StatusNotFound, Message: "no such path " + r.URL.Path,
			Hint: "see /v1/status, /v1/explain, /v1/entries, /v1/top, /v1/warm, /v1/invalidate, /debug/pprof/"})
	})
	return h.guard(mux)
}

func (h *handler) explain(r *http.Request) (any, error) {
	q, err := ParseExplain(r.URL.Query())
	if err != nil {
		return nil, err
	}
	return h.backend.Explain(r.Context(), q)
}

func (h *handler) entries(r *http.Request) (any, error) {
	q, err := parseEntries(r.URL.Query())
	if err != nil {
		return nil, err
	}
	return h.backend.Entries(r.Context(), q)
}

func (h *handler) invalidate(r *http.Request) (any, error) {
	var body InvalidateRequest
	if err := decode(r, &body); err != nil {
		return nil, err
	}
	body, err := body.Normalize()
	if err != nil {
		return nil, err
	}
	result, err := h.backend.Invalidate(r.Context(), body)
	if err == nil {
		h.o.Log.Info("Invalidated", "by", body.By, "value", body.Value, "namespace", body.Namespace, "mode", body.Mode,
			"position", result.Position, "confirmed", result.Confirmed, "replicas", result.Replicas)
	}
	return result, err
}

// answer writes what f returns as JSON. A body has at most maxBytes.
func (h *handler) answer(maxBytes int64, f func(r *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBytes)
		v, err := f(r)
		if err == nil {
			writeJSON(w, http.StatusOK, v)
			return
		}
		var e *Error
		if !errors.As(err, &e) {
			h.o.Log.Error("Admin request failed", "path", r.URL.Path, "error", err)
			e = &Error{Status: http.StatusInternalServerError, Message: err.Error()}
		}
		writeError(w, e)
	})
}

// decode reads a JSON body strictly: one value, no unknown field.
func decode(r *http.Request, v any) error {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return &Error{Status: http.StatusUnsupportedMediaType, Message: "the body must be JSON",
			Hint: "send Content-Type: application/json"}
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil && d.More() {
		err = errors.New("more than one value")
	}
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &tooLarge):
		return &Error{Status: http.StatusRequestEntityTooLarge, Hint: "send several requests",
			Message: fmt.Sprintf("the body is larger than %d MiB", tooLarge.Limit>>20)}
	case errors.Is(err, io.EOF):
		return BadRequest("", "the body is empty")
	}
	return BadRequest("", "%s", err)
}

func methodNotAllowed(allowed string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allowed)
		writeError(w, &Error{Status: http.StatusMethodNotAllowed,
			Message: "method " + r.Method + " is not possible here", Hint: "use " + allowed})
	})
}

func writeError(w http.ResponseWriter, e *Error) { writeJSON(w, e.Status, e) }

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error": "the answer cannot be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

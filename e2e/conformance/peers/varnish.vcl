# Varnish as a caching reverse proxy: the built-in VCL. The parameters on its command line turn off the lifetime and
# the stale window that the origin did not ask for, and keep stale objects for validation, as the suite's authors do.
vcl 4.1;
backend default {
  .host = "{{.OriginHost}}";
  .port = "{{.OriginPort}}";
}

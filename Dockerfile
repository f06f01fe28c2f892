# The demo, without a network:
#   docker build -t selfsent .
#   docker run --rm --network none -v "$PWD/runs:/runs" selfsent
# Any other command: docker run --rm -v "$PWD:/runs" selfsent train tickets.csv --text-column body --output tickets

# An index over HTTP, without torch:
#   docker build --target serve -t selfsent-serve .
#   docker run --rm -p 8000:8000 -v "$PWD/tickets.index:/index:ro" selfsent-serve

FROM python:3.12-slim AS build-serve
WORKDIR /source
COPY requirements-serve.txt pyproject.toml README.md LICENSE ./
RUN python -m venv /opt/selfsent \
    && /opt/selfsent/bin/pip install --no-cache-dir --no-deps -r requirements-serve.txt
COPY src src
RUN /opt/selfsent/bin/pip install --no-cache-dir --no-deps . \
    && /opt/selfsent/bin/pip uninstall -y pip \
    # Without torch nothing opens the transformers that ship.
    && rm -rf /opt/selfsent/lib/python3.12/site-packages/selfsent/models/bundled/encoder \
        /opt/selfsent/lib/python3.12/site-packages/selfsent/models/bundled/raw

FROM python:3.12-slim AS serve
COPY --from=build-serve /opt/selfsent /opt/selfsent
ENV PATH=/opt/selfsent/bin:$PATH HF_HUB_OFFLINE=1 SELFSENT_CACHE=/tmp/selfsent HOME=/tmp
EXPOSE 8000
ENTRYPOINT ["selfsent"]
CMD ["serve", "/index", "--host", "0.0.0.0"]

FROM python:3.12-slim AS build
# Without this PyPI's torch would come, which brings gigabytes of CUDA along.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
WORKDIR /source
COPY constraints.txt ./
RUN python -m venv /opt/selfsent \
    && /opt/selfsent/bin/pip install --no-cache-dir --index-url "$TORCH_INDEX" "$(grep '^torch==' constraints.txt)"
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY packages packages
RUN /opt/selfsent/bin/pip install --no-cache-dir -c constraints.txt ".[clean,serve,index]" ./packages/papers

FROM python:3.12-slim
COPY --from=build /opt/selfsent /opt/selfsent
ENV PATH=/opt/selfsent/bin:$PATH HF_HUB_OFFLINE=1 SELFSENT_CACHE=/tmp/selfsent HOME=/tmp
WORKDIR /runs
ENTRYPOINT ["selfsent"]
CMD ["train", "python:stdlib", "--output", "demo", "--overwrite"]

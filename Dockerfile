# The demo, without a network:
#   docker build -t selfsent .
#   docker run --rm --network none -v "$PWD/runs:/runs" selfsent
# Any other command: docker run --rm -v "$PWD:/runs" selfsent train tickets.csv --text-column body --output tickets

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
